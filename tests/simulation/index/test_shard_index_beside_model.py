"""Random histories of a shard's index that crashes and is loaded from its stored buckets, compared with a model."""

import pytest
from hypothesis import settings

from support.index_history import IndexBesideModel

pytestmark = pytest.mark.simulation


TestIndexBesideModel = IndexBesideModel.TestCase
TestIndexBesideModel.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
