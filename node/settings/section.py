"""The base class of all sections of the settings, and the serializers of their values."""

from collections.abc import Iterator
from typing import Self

from pydantic import BaseModel, ConfigDict, PlainSerializer, model_validator

from strandline.node.settings.files import CredentialsFile, SecretFile, TokensFile
from strandline.node.settings.findings import Finding, validation_error

# A model serializes each value as in the settings file. A file is serialized as its path.
AS_WRITTEN = PlainSerializer(lambda value: "" if value is None else str(value), return_type=str)
AS_LIST = PlainSerializer(list, return_type=list[str])


class Section(BaseModel):
    """One table of the settings file. pydantic does not show invalid values, since these may be secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def findings(self) -> Iterator[Finding]:
        """Findings about combinations of values that are valid one by one."""
        return iter(())

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if found := tuple(self.findings()):
            raise validation_error(found)
        return self

    def secrets(self) -> Iterator[str]:
        """All secrets in the section's files."""
        for name in type(self).model_fields:
            match getattr(self, name):
                case SecretFile(content=secret) | CredentialsFile(password=secret):
                    yield secret.get_secret_value()
                case TokensFile(tokens=tokens):
                    yield from (token.get_secret_value() for token in tokens)
