"""The results of a fragment in several shards as one."""

from collections.abc import Mapping

from strandline.node.query.answers import EvaluateAnswer, FragmentResult, SamplesAnswer
from strandline.node.query.key_hashes import distinct
from strandline.promql.annotations import NONE
from strandline.promql.evaluation.partials import evaluate_partial, merged
from strandline.promql.plan.fragments import Fragment
from strandline.promql.values import Samples
from strandline.promql.windows import canonical_nans


def samples_result(answer: SamplesAnswer) -> FragmentResult:
    """The samples of a fragment that is not evaluated in shards."""
    return FragmentResult(_samples(answer), NONE, len(answer.time), answer.warnings)


def merge_evaluated(
    fragment: Fragment, answers: Mapping[int, EvaluateAnswer], *, known: bytes, elsewhere: SamplesAnswer | None
) -> FragmentResult | bytes:
    """The result from those of all shards, and from the samples of series that lie in the wrong partition, whose hashes
    are `known`. If there are more of those, all their hashes instead: shards have to be asked again without them.
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
    vector, told = merged(fragment, partials)
    return FragmentResult(vector, told, samples, warnings)


def _samples(answer: SamplesAnswer) -> Samples:
    return Samples(answer.keys, answer.first_sample, answer.time, canonical_nans(answer.value))
