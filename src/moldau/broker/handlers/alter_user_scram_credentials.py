"""AlterUserScramCredentials (key 51), v0: set and delete the SCRAM credentials of users."""

from __future__ import annotations

from moldau.broker.metadata.machine.scram_credentials import alter_user_scram_credentials
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


class AlterUserScramCredentialsHandler:
    def __init__(self, metadata: MetadataShell) -> None:
        self._metadata = metadata

    async def handle(
        self, context: RequestContext, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        return await self._metadata.run(alter_user_scram_credentials, request)
