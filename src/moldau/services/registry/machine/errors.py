"""What the registry refuses: Confluent's error codes and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = [
    "IncompatibleSchema",
    "InvalidContext",
    "InvalidRequest",
    "InvalidSchema",
    "RegistryError",
    "association_exists",
    "association_frozen",
    "association_not_found",
    "compatibility_not_configured",
    "context_not_empty",
    "id_not_found",
    "invalid_association",
    "invalid_compatibility",
    "invalid_mode",
    "invalid_rule_set",
    "invalid_subject",
    "invalid_version",
    "mode_not_configured",
    "no_active_version",
    "not_permitted",
    "reference_exists",
    "references_exist",
    "schema_not_found",
    "schema_too_large",
    "subject_associated",
    "subject_not_found",
    "subject_not_soft_deleted",
    "subject_soft_deleted",
    "subject_strongly_associated",
    "version_not_found",
    "version_not_soft_deleted",
    "version_soft_deleted",
]

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_UNPROCESSABLE: Final = 422


class RegistryError(Exception):
    """A request that is refused: the HTTP status, Confluent's code, and what is wrong."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class InvalidRequest(RegistryError):
    """A body or parameter that cannot be read."""

    def __init__(self, message: str) -> None:
        super().__init__(400, 400, message)


class InvalidContext(RegistryError):
    def __init__(self, context: str) -> None:
        super().__init__(400, 400, f"Context name '{context}' cannot contain a colon")


class InvalidSchema(RegistryError):
    def __init__(self, message: str) -> None:
        super().__init__(_UNPROCESSABLE, 42201, message)


class IncompatibleSchema(RegistryError):
    def __init__(self, subject: str, reasons: Sequence[str]) -> None:
        super().__init__(
            _CONFLICT,
            409,
            "Schema being registered is incompatible with an earlier schema for subject "
            f'"{subject}", details: [{", ".join(reasons)}]',
        )


def subject_not_found(subject: str | None) -> RegistryError:
    return RegistryError(_NOT_FOUND, 40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    return RegistryError(_NOT_FOUND, 40402, f"Version {version} not found.")


def schema_not_found() -> RegistryError:
    return RegistryError(_NOT_FOUND, 40403, "Schema not found")


def id_not_found(id_or_guid: int | str) -> RegistryError:
    return RegistryError(_NOT_FOUND, 40403, f"Schema {id_or_guid} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        _NOT_FOUND,
        40404,
        f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently",
    )


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        _NOT_FOUND,
        40405,
        f"Subject '{subject}' was not deleted first before being permanently deleted",
    )


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        _NOT_FOUND,
        40406,
        f"Subject '{subject}' Version {version} was soft deleted."
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        _NOT_FOUND,
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being "
        "permanently deleted",
    )


def compatibility_not_configured(subject: str | None) -> RegistryError:
    return RegistryError(
        _NOT_FOUND,
        40408,
        f"Subject '{subject}' does not have subject-level compatibility configured",
    )


def mode_not_configured(subject: str | None) -> RegistryError:
    return RegistryError(
        _NOT_FOUND, 40409, f"Subject '{subject}' does not have subject-level mode configured"
    )


def association_not_found(resource: str) -> RegistryError:
    return RegistryError(_NOT_FOUND, 40410, f"Association for '{resource}' not found.")


def association_exists(association_type: str, resource: str) -> RegistryError:
    return RegistryError(
        _CONFLICT,
        40903,
        f"An association of type '{association_type}' already exists for resource '{resource}'",
    )


def subject_associated(subject: str) -> RegistryError:
    return RegistryError(_CONFLICT, 40904, f"An association already exists for subject '{subject}'")


def subject_strongly_associated(subject: str) -> RegistryError:
    return RegistryError(
        _CONFLICT, 40905, f"A strong association already exists for subject '{subject}'"
    )


def no_active_version(subject: str) -> RegistryError:
    return RegistryError(
        _CONFLICT, 40907, f"No active (non-deleted) version exists for subject '{subject}'"
    )


def association_frozen(association_type: str, subject: str) -> RegistryError:
    # The two spaces are Confluent's.
    return RegistryError(
        _CONFLICT,
        40908,
        f"The association of type  '{association_type}' is frozen for subject '{subject}'",
    )


def invalid_association(field: str, detail: str) -> RegistryError:
    return RegistryError(
        _UNPROCESSABLE,
        42212,
        f"The association specified an invalid value for property: '{field}', detail: {detail}",
    )


def invalid_version(version: str) -> RegistryError:
    return RegistryError(
        _UNPROCESSABLE,
        42202,
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_compatibility() -> RegistryError:
    return RegistryError(
        _UNPROCESSABLE,
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode(
    message: str = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
) -> RegistryError:
    return RegistryError(_UNPROCESSABLE, 42204, message)


def not_permitted(message: str) -> RegistryError:
    return RegistryError(_UNPROCESSABLE, 42205, message)


def reference_exists(subject: str, version: int) -> RegistryError:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return references_exist(key)


def references_exist(what: str) -> RegistryError:
    return RegistryError(
        _UNPROCESSABLE, 42206, f"One or more references exist to the schema {what}."
    )


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(
        _UNPROCESSABLE, 42208, f"The specified subject '{subject}' is not a valid."
    )


def schema_too_large() -> RegistryError:
    return RegistryError(
        _UNPROCESSABLE, 42209, "Register operation failed because schema is too large"
    )


def invalid_rule_set(message: str) -> RegistryError:
    return RegistryError(_UNPROCESSABLE, 42210, message)


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(_UNPROCESSABLE, 42211, f"The specified context '{context}' is not empty.")
