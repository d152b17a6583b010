"""The reasons for bad records of text formats: codes for kernels, and texts for people."""

from enum import IntEnum

from strandline.wire.kernels.labels import Verdict


class Reason(IntEnum):
    """The codes. Reasons concerning labels are the verdicts of `strandline.wire.kernels.labels`."""

    NO_LABELS = Verdict.NO_LABELS
    EMPTY_NAME = Verdict.EMPTY_NAME
    DUPLICATE_NAME = Verdict.DUPLICATE_NAME
    NOT_UTF8 = Verdict.NOT_UTF8
    TOO_MANY_LABELS = Verdict.TOO_MANY_LABELS
    NAME_TOO_LONG = Verdict.NAME_TOO_LONG
    VALUE_TOO_LONG = Verdict.VALUE_TOO_LONG
    NO_METRIC = 10
    BAD_VALUE = 11
    NO_VALUE = 12
    BAD_TIME = 13
    TIME_OUT_OF_RANGE = 14
    NO_TIME = 15
    TOO_FEW_COLUMNS = 16
    TOO_MANY_COLUMNS = 17
    OPEN_QUOTE = 18
    STRAY_QUOTE = 19
    BAD_METRIC = 20
    BAD_LABELS = 21
    BAD_EXEMPLAR = 22
    AFTER_EOF = 23
    BAD_JSON = 24
    TOO_DEEP = 25
    REPEATED_KEY = 26
    NO_METRIC_OBJECT = 27
    BAD_METRIC_OBJECT = 28
    NO_ARRAYS = 29
    UNEQUAL_ARRAYS = 30


TEXTS = {
    Reason.NO_LABELS: "no labels",
    Reason.EMPTY_NAME: "a label has an empty name",
    Reason.DUPLICATE_NAME: "a label name occurs twice",
    Reason.NOT_UTF8: "a label is not valid UTF-8",
    Reason.TOO_MANY_LABELS: "too many labels",
    Reason.NAME_TOO_LONG: "a label name is too long",
    Reason.VALUE_TOO_LONG: "a label value is too long",
    Reason.NO_METRIC: "no metric name",
    Reason.BAD_VALUE: "the value is not a number",
    Reason.NO_VALUE: "no value",
    Reason.BAD_TIME: "the time does not have the expected form",
    Reason.TIME_OUT_OF_RANGE: "the time is out of range",
    Reason.NO_TIME: "no timestamp",
    Reason.TOO_FEW_COLUMNS: "too few columns",
    Reason.TOO_MANY_COLUMNS: "too many columns",
    Reason.OPEN_QUOTE: "a quoted field is not closed",
    Reason.STRAY_QUOTE: "a quote at a place where none may stand",
    Reason.BAD_METRIC: "the metric name is malformed",
    Reason.BAD_LABELS: "the labels are malformed",
    Reason.BAD_EXEMPLAR: "the text after the timestamp is not an exemplar",
    Reason.AFTER_EOF: "text after # EOF",
    Reason.BAD_JSON: "not a valid JSON object",
    Reason.TOO_DEEP: "JSON is nested too deeply",
    Reason.REPEATED_KEY: "a JSON key occurs twice",
    Reason.NO_METRIC_OBJECT: 'no "metric" object',
    Reason.BAD_METRIC_OBJECT: 'the "metric" object may hold only strings',
    Reason.NO_ARRAYS: 'no "values" or no "timestamps"',
    Reason.UNEQUAL_ARRAYS: '"values" and "timestamps" differ in length',
}
REASONS = max(Reason) + 1
