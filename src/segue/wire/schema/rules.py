"""The JSON Schema subset of each target, as data.

Most providers publish a subset; some only reject schemas with an error. The comments name the source of a value: a rule
of the rulebook, the vendor's page, or an error that users reported.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

_ALL_ENUM_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string"})
_LITERAL_TYPES = frozenset({"null", "boolean", "number", "string"})


class UnsupportedSchemaError(Exception):
    """A strict subset can't express this schema."""


class SchemaRules(Struct, frozen=True):
    """One target's subset. The defaults are those of a server that accepts all of JSON Schema.

    Without `keywords` the target is lenient: only what the other fields reject is changed. With `keywords` it accepts a
    subset: every node becomes one typed node, an `anyOf` of such nodes, or a reference.
    """

    name: str
    keywords: frozenset[str] | None = None
    draft: Literal["2020-12", "7"] = "2020-12"
    rejected_at_top: frozenset[str] = frozenset({"$ref"})
    """Keywords rejected next to `type: object` at the root of tool parameters."""
    refs: Literal["defs", "inline"] = "defs"
    """Whether `$ref` into `$defs` is accepted, or references must be inlined."""
    recursion: bool = True
    ref_siblings: frozenset[str] = frozenset()
    """Keywords accepted next to `$ref`."""
    any_of_siblings: frozenset[str] = frozenset({"description", "title"})
    """Keywords accepted next to `anyOf`."""
    exclusive_siblings: bool = False
    """Whether a sibling of `anyOf` may not occur in its members as well."""
    type_lists: Literal["free", "scalars", "bare", "none"] = "free"
    """Where `type` may be a list: anywhere, for scalars, without further keywords, or nowhere."""
    any_value: Literal["empty", "types", "branches"] = "empty"
    """How «any value» is rendered: `{}`, a list of all types, or an `anyOf` of them."""
    enum_types: frozenset[str] = _ALL_ENUM_TYPES
    empty_enum_string: bool = True
    enum_limit: int | None = None
    formats: frozenset[str] | None = None
    no_lookaround: bool = False
    """Whether patterns with lookaround or back references are rejected."""
    property_name_pattern: str | None = None
    """What a key of `properties` must match."""
    slash_in_defs: bool = True
    """Whether property names inside `$defs` may contain a slash."""
    items_required: bool = False
    required_must_be_declared: bool = False
    """Whether every name in `required` must be a key of `properties`."""
    must_terminate: bool = False
    """Whether infinite recursion is rejected."""
    max_min_items: int | None = None
    """The highest accepted `minItems`."""
    closed_objects: bool = False
    """Whether every object must have `additionalProperties: false`."""
    all_required: bool = False
    """Whether every property must be required."""
    response_must_be_object: bool = True
    """Whether the schema of a response format must be an object, as that of parameters."""
    openapi: bool = False
    """`nullable` and types in capitals, as OpenAPI 3.0 has them."""
    max_object_depth: int = 40
    property_limit: int | None = None

    @property
    def strict(self) -> bool:
        """Whether some schemas can't be expressed: strict subsets have no open objects."""
        return self.closed_objects


_STRUCTURE = frozenset({"type", "properties", "required", "items", "anyOf", "enum", "description", "$ref", "$defs"})
_RANGES = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COMBINATIONS = frozenset({"oneOf", "anyOf", "allOf"})

UNRESTRICTED = SchemaRules("plain")
QWEN = UNRESTRICTED

# Errors seen: «schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top
# level», «array schema missing items», «object schema missing properties» (which all but OpenAPI get at the top).
OPENAI = SchemaRules("openai", rejected_at_top=_COMBINATIONS | {"enum", "const", "not", "$ref"}, items_required=True)
# Its validator has the same error messages («schema must be a JSON Schema of 'type: "object"'»).
DEEPSEEK = replace(OPENAI, name="deepseek")

# Guide «Structured model outputs»: supported schemas. `default`, other formats and lengths are rejected by name.
OPENAI_STRICT = SchemaRules(
    "openai-strict",
    keywords=_STRUCTURE
    | _RANGES
    | {"additionalProperties", "const", "title", "pattern", "format"}
    | {"minItems", "maxItems"},
    rejected_at_top=_COMBINATIONS | {"enum", "const", "not", "$ref"},
    formats=frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}),
    enum_types=_LITERAL_TYPES,
    enum_limit=1000,
    no_lookaround=True,
    items_required=True,
    closed_objects=True,
    all_required=True,
    max_object_depth=10,
    property_limit=5000,
)
# Guide «Tool calls», strict mode (beta): no lengths, no sizes of arrays.
DEEPSEEK_STRICT = replace(
    OPENAI_STRICT,
    name="deepseek-strict",
    keywords=_STRUCTURE | _RANGES | {"additionalProperties", "const", "default", "title", "pattern", "format"},
    formats=frozenset({"email", "hostname", "ipv4", "ipv6", "uuid"}),
    type_lists="scalars",
)

# ANT-36. Errors seen: «input_schema does not support oneOf, allOf, or anyOf at the top level», «It must match JSON
# Schema draft 2020-12». Property names are projected (ANT-41).
ANTHROPIC = SchemaRules("anthropic", rejected_at_top=_COMBINATIONS | {"$ref"})
# Page «Structured outputs», JSON Schema limitations; `output_config.format` and strict tools.
ANTHROPIC_STRICT = SchemaRules(
    "anthropic-strict",
    keywords=_STRUCTURE | {"additionalProperties", "const", "title", "default", "format", "minItems"},
    rejected_at_top=_COMBINATIONS | {"enum", "const", "not", "$ref"},
    recursion=False,
    formats=frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}),
    enum_types=_LITERAL_TYPES,
    property_name_pattern=r"[a-zA-Z0-9_.-]{1,64}",
    max_min_items=1,
    closed_objects=True,
)

# «The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.» The subset
# of vendors other than Anthropic is not published; the root is kept simple for all.
BEDROCK = SchemaRules("bedrock", rejected_at_top=_COMBINATIONS | {"enum", "const", "not", "$ref"})
# Nova's guide «Tool use»: only `type`, `properties` and `required` at the root, so no `$defs`.
NOVA = replace(
    BEDROCK,
    name="nova",
    keywords=_STRUCTURE - {"$ref", "$defs"}
    | _RANGES
    | {"additionalProperties", "const", "default", "title", "pattern", "format", "minLength", "maxLength"}
    | {"minItems", "maxItems"},
    refs="inline",
)

# `parametersJsonSchema` and `responseJsonSchema`: the list of properties in the API's reference. References are
# documented but rejected in practice («reference to undefined schema»), so they are inlined.
GEMINI = SchemaRules(
    "gemini",
    keywords=_STRUCTURE - {"$ref", "$defs"}
    | {"additionalProperties", "title", "format", "prefixItems", "minItems", "maxItems", "minimum", "maximum"},
    rejected_at_top=_COMBINATIONS | {"enum", "const", "not", "$ref"},
    refs="inline",
    enum_types=frozenset({"number", "string"}),
    required_must_be_declared=True,
    response_must_be_object=False,
)
# `parameters`: the message `Schema`. Errors seen: «items: missing field», «only allowed for OBJECT type», «property is
# not defined», «specified other fields alongside any_of», «enum: only allowed for STRING type», «enum[0]: cannot be
# empty», «only 'enum' and 'date-time' are supported for STRING type», «type: must be specified».
GEMINI_OPENAPI = SchemaRules(
    "gemini-openapi",
    keywords=_STRUCTURE - {"$ref", "$defs"}
    | {"title", "format", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern"}
    | {"minProperties", "maxProperties"},
    rejected_at_top=_COMBINATIONS | {"enum", "const", "not", "$ref"},
    refs="inline",
    any_of_siblings=frozenset(),
    type_lists="none",
    any_value="branches",
    enum_types=frozenset({"string"}),
    empty_enum_string=False,
    formats=frozenset({"date-time", "enum", "float", "double", "int32", "int64"}),
    items_required=True,
    required_must_be_declared=True,
    response_must_be_object=False,
    openapi=True,
)

# MIS-13. `$schema` and `$id`, which break its grammar, are never rendered.
MISTRAL = SchemaRules("mistral", draft="7")

# Moonshot Flavored JSON Schema: MoonshotAI/walle, docs/walle.md and the limits of its default configuration.
KIMI = SchemaRules(
    "kimi",
    keywords=_STRUCTURE
    | {"additionalProperties", "title", "default", "pattern", "minLength", "maxLength", "minimum", "maximum"}
    | {"minItems", "maxItems"},
    rejected_at_top=_COMBINATIONS | {"enum", "const", "not", "$ref"},
    exclusive_siblings=True,
    type_lists="bare",
    any_value="types",
    enum_types=frozenset({"number", "string"}),
    enum_limit=1000,
    property_name_pattern=r"(?!(\$defs|\$ref|anyOf|required|additionalProperties)\Z)[\s\S]+",
    slash_in_defs=False,
    required_must_be_declared=True,
    must_terminate=True,
    max_object_depth=30,
)

ROWS = (
    UNRESTRICTED,
    OPENAI,
    OPENAI_STRICT,
    ANTHROPIC,
    ANTHROPIC_STRICT,
    BEDROCK,
    NOVA,
    GEMINI,
    GEMINI_OPENAPI,
    MISTRAL,
    KIMI,
    DEEPSEEK,
    DEEPSEEK_STRICT,
)
