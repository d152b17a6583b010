"""The results of test scripts."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from strandline.errors import ExitCode
from strandline.node.client.notation import single_line
from strandline.node.output import Block, Table
from strandline.promql.testing.running import Finding, Outcome


@dataclass(frozen=True, slots=True)
class ScriptReport:
    """The results of a script: passed evaluations, skipped ones by reason, and failures."""

    file: str
    passed: int
    skipped: Mapping[str, int]
    failed: tuple[Finding, ...]

    @classmethod
    def of(cls, file: str, findings: list[Finding]) -> "ScriptReport":
        """The report of a script's findings."""
        counts = Counter(one.outcome for one in findings)
        reasons = Counter(one.reason for one in findings if one.outcome is Outcome.SKIPPED)
        failed = tuple(one for one in findings if one.outcome is Outcome.FAILED)
        return cls(file, counts[Outcome.PASSED], dict(reasons), failed)


@dataclass(frozen=True, slots=True)
class TestReport:
    """The results of all scripts of a command."""

    __test__ = False

    passed: int
    failed: int
    skipped: int
    files: tuple[ScriptReport, ...]

    @classmethod
    def of(cls, files: tuple[ScriptReport, ...]) -> "TestReport":
        """The report of several scripts."""
        return cls(
            sum(one.passed for one in files),
            sum(len(one.failed) for one in files),
            sum(sum(one.skipped.values()) for one in files),
            files,
        )

    @property
    def exit_code(self) -> ExitCode:
        """FAILED if an evaluation has failed. Skipped ones do not count as failures."""
        return ExitCode.FAILED if self.failed else ExitCode.OK

    def blocks(self) -> Iterator[Block]:
        """The failures by file and line, then the counts."""
        for script in self.files:
            for one in script.failed:
                yield f"{script.file}:{one.line}: {single_line(one.query)}"
                yield f"  {single_line(one.reason)}" + (f" ({single_line(one.variant)})" if one.variant else "")
        rows = [
            (one.file, f"{one.passed:,}", f"{len(one.failed):,}", f"{sum(one.skipped.values()):,}")
            for one in self.files
        ]
        if len(rows) > 1:
            rows.append(("all", f"{self.passed:,}", f"{self.failed:,}", f"{self.skipped:,}"))
        yield Table(("file", "passed", "failed", "skipped"), tuple(rows))
        reasons = sum((Counter(one.skipped) for one in self.files), Counter[str]())
        for reason, count in reasons.most_common():
            yield f"{count:,} skipped: {reason}"
