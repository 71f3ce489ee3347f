from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TableTicket(_message.Message):
    __slots__ = ("ticket",)
    TICKET_FIELD_NUMBER: _ClassVar[int]
    ticket: bytes
    def __init__(self, ticket: _Optional[bytes] = ...) -> None: ...

class ConfigurationConstantsResponse(_message.Message):
    __slots__ = ("config_values",)
    class ConfigValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ConfigValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ConfigValue, _Mapping]] = ...) -> None: ...
    CONFIG_VALUES_FIELD_NUMBER: _ClassVar[int]
    config_values: _containers.MessageMap[str, ConfigValue]
    def __init__(self, config_values: _Optional[_Mapping[str, ConfigValue]] = ...) -> None: ...

class ConfigValue(_message.Message):
    __slots__ = ("string_value",)
    STRING_VALUE_FIELD_NUMBER: _ClassVar[int]
    string_value: str
    def __init__(self, string_value: _Optional[str] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: TableTicket
    def __init__(self, id: _Optional[_Union[TableTicket, _Mapping]] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("source_id", "result_id")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_ID_FIELD_NUMBER: _ClassVar[int]
    source_id: TableTicket
    result_id: TableTicket
    def __init__(self, source_id: _Optional[_Union[TableTicket, _Mapping]] = ..., result_id: _Optional[_Union[TableTicket, _Mapping]] = ...) -> None: ...

class TypedTicket(_message.Message):
    __slots__ = ("ticket", "type")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ticket: TableTicket
    type: str
    def __init__(self, ticket: _Optional[_Union[TableTicket, _Mapping]] = ..., type: _Optional[str] = ...) -> None: ...

class FieldInfo(_message.Message):
    __slots__ = ("typed_ticket", "field_name", "field_description", "application_name", "application_id")
    TYPED_TICKET_FIELD_NUMBER: _ClassVar[int]
    FIELD_NAME_FIELD_NUMBER: _ClassVar[int]
    FIELD_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_NAME_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    typed_ticket: TypedTicket
    field_name: str
    field_description: str
    application_name: str
    application_id: str
    def __init__(self, typed_ticket: _Optional[_Union[TypedTicket, _Mapping]] = ..., field_name: _Optional[str] = ..., field_description: _Optional[str] = ..., application_name: _Optional[str] = ..., application_id: _Optional[str] = ...) -> None: ...

class FieldsChangeUpdate(_message.Message):
    __slots__ = ("created", "updated", "removed")
    CREATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    created: _containers.RepeatedCompositeFieldContainer[FieldInfo]
    updated: _containers.RepeatedCompositeFieldContainer[FieldInfo]
    removed: _containers.RepeatedCompositeFieldContainer[FieldInfo]
    def __init__(self, created: _Optional[_Iterable[_Union[FieldInfo, _Mapping]]] = ..., updated: _Optional[_Iterable[_Union[FieldInfo, _Mapping]]] = ..., removed: _Optional[_Iterable[_Union[FieldInfo, _Mapping]]] = ...) -> None: ...

class TableReference(_message.Message):
    __slots__ = ("ticket", "batch_offset")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    BATCH_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ticket: TableTicket
    batch_offset: int
    def __init__(self, ticket: _Optional[_Union[TableTicket, _Mapping]] = ..., batch_offset: _Optional[int] = ...) -> None: ...

class FetchTableRequest(_message.Message):
    __slots__ = ("source_id", "result_id")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_ID_FIELD_NUMBER: _ClassVar[int]
    source_id: TableReference
    result_id: TableTicket
    def __init__(self, source_id: _Optional[_Union[TableReference, _Mapping]] = ..., result_id: _Optional[_Union[TableTicket, _Mapping]] = ...) -> None: ...

class BatchTableRequest(_message.Message):
    __slots__ = ("ops",)
    class Operation(_message.Message):
        __slots__ = ("fetch_table",)
        FETCH_TABLE_FIELD_NUMBER: _ClassVar[int]
        fetch_table: FetchTableRequest
        def __init__(self, fetch_table: _Optional[_Union[FetchTableRequest, _Mapping]] = ...) -> None: ...
    OPS_FIELD_NUMBER: _ClassVar[int]
    ops: _containers.RepeatedCompositeFieldContainer[BatchTableRequest.Operation]
    def __init__(self, ops: _Optional[_Iterable[_Union[BatchTableRequest.Operation, _Mapping]]] = ...) -> None: ...

class ExportedTableCreationResponse(_message.Message):
    __slots__ = ("result_id", "success", "error_info", "schema_header", "is_static", "size")
    RESULT_ID_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    ERROR_INFO_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_HEADER_FIELD_NUMBER: _ClassVar[int]
    IS_STATIC_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    result_id: TableReference
    success: bool
    error_info: str
    schema_header: bytes
    is_static: bool
    size: int
    def __init__(self, result_id: _Optional[_Union[TableReference, _Mapping]] = ..., success: _Optional[bool] = ..., error_info: _Optional[str] = ..., schema_header: _Optional[bytes] = ..., is_static: _Optional[bool] = ..., size: _Optional[int] = ...) -> None: ...
