"""Random histories of a shard's index that crashes and is loaded from its stored buckets, beside a model."""

import pytest
from hypothesis import settings

from strandline.index.key_documents import DictDocuments
from support.index_history import IndexBesideModel

pytestmark = pytest.mark.simulation


class RestartFromBuckets(IndexBesideModel):
    def empty_documents(self) -> DictDocuments:
        return DictDocuments()


TestIndexBesideModel = RestartFromBuckets.TestCase
TestIndexBesideModel.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
