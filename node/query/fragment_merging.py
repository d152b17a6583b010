"""Merges the results of a fragment in several shards."""

from collections.abc import Mapping

from strandline.node.query.answers import EvaluateAnswer, FragmentResult, SamplesAnswer
from strandline.node.query.key_hashes import distinct
from strandline.promql.annotations import NONE
from strandline.promql.evaluation.partials import evaluate_partial, merged
from strandline.promql.plan.fragments import Fragment
from strandline.promql.values import Samples
from strandline.promql.windows import canonical_nans


def samples_result(answer: SamplesAnswer) -> FragmentResult:
    """The result of a fragment that is not evaluated in shards: its samples."""
    return FragmentResult(_samples(answer), NONE, len(answer.time), answer.warnings)


def merge_evaluated(
    fragment: Fragment, answers: Mapping[int, EvaluateAnswer], *, known: bytes, elsewhere: SamplesAnswer | None
) -> FragmentResult | bytes:
    """The result, from the partial results of all shards and from the samples of the misplaced series, `elsewhere`,
    whose hashes are `known`. If the answers name more misplaced series, the hashes of all of them instead: the shards
    have to evaluate the fragment again without these.
    """
    misplaced = distinct([known, *(answer.misplaced for answer in answers.values())])
    if len(misplaced) > len(known):
        return misplaced
    partials = [answer.partial for answer in answers.values()]
    warnings = tuple(warning for answer in answers.values() for warning in answer.warnings)
    samples = sum(answer.samples for answer in answers.values())
    if elsewhere is not None:
        partials.append(evaluate_partial(fragment, _samples(elsewhere)))
        warnings += elsewhere.warnings
        samples += len(elsewhere.time)
    vector, annotations = merged(fragment, partials)
    return FragmentResult(vector, annotations, samples, warnings)


def _samples(answer: SamplesAnswer) -> Samples:
    return Samples(answer.keys, answer.first_sample, answer.time, canonical_nans(answer.value))
