"""Remote-write 1.0 messages by the official protobuf implementation, for comparison with ours."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto


def _field(name: str, number: int, kind: int, *, repeated: bool = False, message: str = "") -> Field:
    label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    field = Field(name=name, number=number, type=kind, label=label)
    if message:
        field.type_name = f".prometheus.{message}"
    return field


def _message(name: str, *fields: Field) -> descriptor_pb2.DescriptorProto:
    return descriptor_pb2.DescriptorProto(name=name, field=fields)


def _write_request(text: int) -> type:
    """The message's class, with labels of the given type of field."""
    file = descriptor_pb2.FileDescriptorProto(
        name="remote_write.proto",
        package="prometheus",
        syntax="proto3",
        message_type=[
            _message("Label", _field("name", 1, text), _field("value", 2, text)),
            _message("Sample", _field("value", 1, Field.TYPE_DOUBLE), _field("timestamp", 2, Field.TYPE_INT64)),
            _message(
                "TimeSeries",
                _field("labels", 1, Field.TYPE_MESSAGE, repeated=True, message="Label"),
                _field("samples", 2, Field.TYPE_MESSAGE, repeated=True, message="Sample"),
                _field("exemplars", 3, Field.TYPE_BYTES, repeated=True),
                _field("histograms", 4, Field.TYPE_BYTES, repeated=True),
            ),
            _message(
                "WriteRequest",
                _field("timeseries", 1, Field.TYPE_MESSAGE, repeated=True, message="TimeSeries"),
                _field("metadata", 3, Field.TYPE_BYTES, repeated=True),
            ),
        ],
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("prometheus.WriteRequest"))


WriteRequest = _write_request(Field.TYPE_STRING)
# The same on the wire, but accepts labels that are not UTF-8, as a hostile client may send them.
RawWriteRequest = _write_request(Field.TYPE_BYTES)
