"""What every section of the settings has in common: how it is checked as a whole, and how its values are written."""

from collections.abc import Iterator
from typing import Self

from pydantic import BaseModel, ConfigDict, PlainSerializer, model_validator

from strandline.node.settings.files import CredentialsFile, SecretFile, TokensFile
from strandline.node.settings.findings import Finding, raised

# A model dumps each value as the settings file would have it; of a file that is its path alone.
AS_WRITTEN = PlainSerializer(lambda value: "" if value is None else str(value), return_type=str)
AS_LIST = PlainSerializer(list, return_type=list[str])


class Section(BaseModel):
    """One table of the settings file. Wrong values are never echoed by pydantic, since one may be a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def findings(self) -> Iterator[Finding]:
        """What is wrong with values that are right one by one."""
        return iter(())

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if found := tuple(self.findings()):
            raise raised(found)
        return self

    def secrets(self) -> Iterator[str]:
        """Every secret that the section's files held."""
        for name in type(self).model_fields:
            match getattr(self, name):
                case SecretFile(content=secret) | CredentialsFile(password=secret):
                    yield secret.get_secret_value()
                case TokensFile(tokens=tokens):
                    yield from (token.get_secret_value() for token in tokens)
