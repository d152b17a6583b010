"""The lexer. It reads one token at a time, so that the first error in the text is the one that is reported.

Tokens depend on their context: braces contain no keywords, and brackets mostly durations. Error messages are those of
Prometheus.
"""

import re
from typing import NoReturn

from strandline.index.escapes import NUMBERED_ESCAPE, escape_at
from strandline.promql.errors import ParseError, parse_error
from strandline.promql.expressions import Span
from strandline.promql.go_text import quoted, quoted_character
from strandline.promql.number_syntax import scan_number, scan_rest_of_duration
from strandline.promql.tokens import CALLS_IN_DURATIONS, FILLS, KEYWORDS, PUNCTUATION, Kind, Token

_SPACE = re.compile(r"[ \t\r\n]*")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*+")
# Strings may not contain U+FFFD, as in Prometheus: Go uses it for bytes that are not UTF-8.
_STRING = r"""(?P<string>"[^"\\\n\ufffd\ud800-\udfff]*+"|'[^'\\\n\ufffd\ud800-\udfff]*+'|`[^`\ufffd\ud800-\udfff]*+`)"""
_NUMBER = r"(?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![A-Za-z0-9_.]))"
_DURATION = r"(?P<duration>[0-9]++(?:ms|[smhdwy])(?:[0-9]++(?:ms|[smhdw]))*+(?![A-Za-z0-9_]))"
_COMMON = re.compile(
    rf"(?P<word>[A-Za-z_:][A-Za-z0-9_:]*+)|{_NUMBER}|{_DURATION}|{_STRING}"
    r"|(?P<sign>==|!=|<[=/]|>[=/]|=(?!~)|[-+*/%^<>(){}\[\]@,])"
)
_IN_BRACES = re.compile(rf"(?P<identifier>[A-Za-z_][A-Za-z0-9_]*+)|{_STRING}|(?P<sign>=~|!=|!~|[=,}}])")
_IN_DURATION = re.compile(rf"{_NUMBER}|{_DURATION}|(?P<sign>[-+*/%^(),:\]])")
_LETTERS = re.compile(r"[A-Za-z_]+")
_PARENTHESIS_FOLLOWS = re.compile(r"[ \t\r\n]*\(")
_DIGITS_EXPECTED = {"x": 2, "u": 4, "U": 8}
_KINDS = {"number": Kind.NUMBER, "duration": Kind.DURATION, "string": Kind.STRING, "identifier": Kind.IDENTIFIER}
_WORDS_IN_BRACKETS = {kind.value: kind for kind in CALLS_IN_DURATIONS}


class Lexer:
    """Reads the tokens of a text. Raises `ParseError`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._position = 0
        self._parentheses = 0
        self._in_braces = False
        self._in_brackets = False
        self._in_duration = False
        """Whether only durations are expected: from a bracket up to the first number in it."""
        self._had_colon = False
        self._had_duration = False

    def next(self) -> Token:
        """The next token; END at the end, on every further call."""
        text = self.text
        blank = (_SPACE if self._in_duration else _BLANK).match(text, self._position)
        start = self._position = blank.end() if blank else self._position
        if start == len(text):
            return self._end()
        if self._in_braces:
            found = _IN_BRACES.match(text, start)
        elif self._in_duration:
            found = _IN_DURATION.match(text, start)
        else:
            found = _COMMON.match(text, start)
        if found is None:
            return self._uncommon_token(start)
        self._position = found.end()
        lexeme = found.group()
        match found.lastgroup:
            case "word":
                return self._word(lexeme, start)
            case "sign":
                return self._sign(lexeme, start)
            case "number" | "duration" as group:
                self._had_duration |= self._in_duration
                self._in_duration = False
                return Token(_KINDS[group], lexeme, start)
            case group:
                return Token(_KINDS[group or "string"], lexeme, start)

    def _end(self) -> Token:
        start = len(self.text)
        if self._in_braces:
            raise self._error("unexpected end of input inside braces", start)
        if self._in_duration:
            raise self._error("unexpected end of input in duration expression", start)
        if self._parentheses:
            raise self._error("unclosed left parenthesis", start)
        if self._in_brackets:
            raise self._error("unclosed left bracket", start)
        return Token(Kind.END, "", start)

    def _word(self, lexeme: str, start: int) -> Token:
        if self._in_brackets:
            return self._word_in_brackets(start)
        kind = KEYWORDS.get(lexeme.lower())
        if kind is None or (kind in FILLS and not _PARENTHESIS_FOLLOWS.match(self.text, self._position)):
            kind = Kind.METRIC_IDENTIFIER if ":" in lexeme else Kind.IDENTIFIER
        return Token(kind, lexeme, start)

    def _word_in_brackets(self, start: int) -> Token:
        first = self.text[start]
        if first == ":":
            if self._had_colon:
                raise self._error("unexpected colon ':'", start)
            self._position = start + 1
            self._had_colon = True
            return Token(Kind.COLON, first, start)
        token = self._call_in_duration(start)
        if token is None:
            raise self._error(f"unexpected character: {quoted_character(first)}, expected ':'", start)
        return token

    def _call_in_duration(self, start: int) -> Token | None:
        letters = _LETTERS.match(self.text, start)
        kind = _WORDS_IN_BRACKETS.get(letters.group().lower()) if letters else None
        if letters is None or kind is None:
            return None
        self._position = letters.end()
        return Token(kind, letters.group(), start)

    def _sign(self, lexeme: str, start: int) -> Token:
        match lexeme:
            case "(":
                self._parentheses += 1
            case ")":
                self._parentheses -= 1
                if self._parentheses < 0:
                    raise self._error("unexpected right parenthesis ')'", self._position)
            case "{":
                self._in_braces = True
            case "}" if self._in_braces:
                self._in_braces = False
            case "}":
                raise self._error("unexpected character: '}'", start)
            case "[":
                if self._in_brackets:
                    raise self._error("unexpected left bracket '['", start)
                self._in_brackets = self._in_duration = True
                self._had_colon = False
            case "]":
                if not self._in_brackets:
                    raise self._error("unexpected right bracket ']'", start)
                self._in_brackets = self._in_duration = False
            case ":":
                self._colon_in_duration()
        return Token(PUNCTUATION[lexeme], lexeme, start)

    def _colon_in_duration(self) -> None:
        if not self._had_duration:
            raise self._error("unexpected colon before duration in duration expression", self._position)
        if self._had_colon:
            raise self._error("unexpected repeated colon in duration expression", self._position)
        self._had_colon = True

    def _uncommon_token(self, start: int) -> Token:
        """Tokens that no regular expression above matches: strings with escapes, unusual numbers, and errors."""
        character = self.text[start]
        following = self.text[start + 1 : start + 2]
        is_number = "0" <= character <= "9" or (character == "." and "0" <= following <= "9" and following != "")
        if self._in_braces:
            if character in "\"'`":
                return self._string(start)
            self._raise_in_braces(character, following, start)
        if self._in_duration:
            token = self._number_or_duration(start) if is_number else self._call_in_duration(start)
            if token is None:
                raise self._error(f"unexpected character in duration expression: {quoted_character(character)}", start)
            return token
        if is_number:
            return self._number_or_duration(start)
        if character in "\"'`":
            return self._string(start)
        if character in "=!":
            raise self._error(f"unexpected character after '{character}': {quoted_character(following)}", start)
        raise self._error(f"unexpected character: {quoted_character(character)}", start)

    def _raise_in_braces(self, character: str, following: str, start: int) -> NoReturn:
        if character == "!":
            shown = quoted_character(following)
            raise self._error(f"unexpected character after '!' inside braces: {shown}", start)
        if character == "{":
            raise self._error("unexpected left brace '{'", start)
        raise self._error(f"unexpected character inside braces: {quoted_character(character)}", start)

    def _number_or_duration(self, start: int) -> Token:
        end, is_number = scan_number(self.text, start)
        kind = Kind.NUMBER
        if not is_number:
            end, is_duration = scan_rest_of_duration(self.text, end)
            kind = Kind.DURATION
            if not is_duration:
                raise self._error(f"bad number or duration syntax: {quoted(self.text[start:end])}", start)
        self._had_duration |= self._in_duration
        self._in_duration = False
        self._position = end
        return Token(kind, self.text[start:end], start)

    def _string(self, start: int) -> Token:
        text = self.text
        quote = text[start]
        position = start + 1
        while text[position : position + 1] != quote:
            character = text[position : position + 1]
            if quote != "`" and character == "\\":
                escape = escape_at(text, position, quote)
                if escape is None:
                    self._raise_invalid_escape(position, start)
                position = escape[1]
                continue
            if not character or (character == "\n" and quote != "`"):
                raise self._error(f"unterminated {'raw' if quote == '`' else 'quoted'} string", start)
            if character == chr(0xFFFD) or 0xD800 <= ord(character) <= 0xDFFF:
                raise self._error("invalid UTF-8 rune", start)
            position += 1
        self._position = position + 1
        return Token(Kind.STRING, text[start : self._position], start)

    def _raise_invalid_escape(self, position: int, start: int) -> NoReturn:
        """Raise the error for the invalid escape at a backslash."""
        letter = self.text[position + 1 : position + 2]
        if letter and letter in "01234567xuU" and not NUMBERED_ESCAPE.match(self.text, position):
            first = position + 1 if letter.isdigit() else position + 2
            count = _DIGITS_EXPECTED.get(letter, 3)
            allowed = "01234567" if letter.isdigit() else "0123456789abcdefABCDEF"
            wrong = [c for c in self.text[first : first + count] if c not in allowed]
            if wrong:
                raise self._error(f"illegal character {_code_point(wrong[0])} in escape sequence", start)
            raise self._error("escape sequence not terminated", start)
        if not letter:
            raise self._error("escape sequence not terminated", start)
        if letter in "01234567uU":
            raise self._error("escape sequence is an invalid Unicode code point", start)
        raise self._error(f"unknown escape sequence {_code_point(letter)}", start)

    def _error(self, fault: str, start: int) -> ParseError:
        return parse_error(self.text, Span(start, len(self.text)), fault)


def _code_point(character: str) -> str:
    shown = f" '{character}'" if character.isprintable() else ""
    return f"U+{ord(character):04X}{shown}"
