"""JSON Schema, drafts 4 to 2020-12: the registry's schemas, their compatibility, their values."""

from moldau.data.json_schema.drafts import Draft
from moldau.data.json_schema.schema import JsonSchema, JsonSchemaLanguage
from moldau.data.json_schema.validation import JsonSchemaValidator, ValueProblem

__all__ = ["Draft", "JsonSchema", "JsonSchemaLanguage", "JsonSchemaValidator", "ValueProblem"]
