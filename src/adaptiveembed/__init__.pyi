# The public names of AdaptiveEmbed, each listed once; `__init__.py` reads this file.
from adaptiveembed.allocation.fixed import FixedAllocator as FixedAllocator
from adaptiveembed.allocation.oracle import OracleAllocator as OracleAllocator
from adaptiveembed.errors import AdaptiveEmbedError as AdaptiveEmbedError
from adaptiveembed.evaluation.evaluate import evaluate as evaluate
from adaptiveembed.evaluation.protocol import RetrievalTask as RetrievalTask
from adaptiveembed.evaluation.protocol import full_gallery as full_gallery
from adaptiveembed.evaluation.report import Report as Report
from adaptiveembed.retrieval.gallery import Gallery as Gallery
from adaptiveembed.retrieval.rank_table import rank_table as rank_table
from adaptiveembed.retrieval.ranking import Ranking as Ranking
from adaptiveembed.retrieval.ranking import Rankings as Rankings
from adaptiveembed.retrieval.search import search as search
from adaptiveembed.similarity.maxsim import maxsim_matrix as maxsim_matrix
from adaptiveembed.similarity.maxsim import maxsim_pairs as maxsim_pairs
from adaptiveembed.similarity.maxsim import mean_maxsim_matrix as mean_maxsim_matrix
from adaptiveembed.similarity.maxsim import responses as responses
from adaptiveembed.similarity.setsim import setsim_assignment as setsim_assignment
from adaptiveembed.similarity.setsim import setsim_matrix as setsim_matrix
from adaptiveembed.similarity.setsim import setsim_pairs as setsim_pairs
from adaptiveembed.structure.candidates import CAES as CAES
from adaptiveembed.structure.candidates import CandidateSets as CandidateSets
from adaptiveembed.structure.candidates import activate as activate
from adaptiveembed.structure.direction import Direction as Direction
from adaptiveembed.structure.direction import Modality as Modality
from adaptiveembed.structure.groups import PAPER_LAYOUT as PAPER_LAYOUT
from adaptiveembed.structure.groups import GroupLayout as GroupLayout
from adaptiveembed.structure.groups import GroupPrefix as GroupPrefix
from adaptiveembed.structure.selection import Selection as Selection
from adaptiveembed.structure.space import SelectionSpace as SelectionSpace
from adaptiveembed.structure.space import coarse_to_fine as coarse_to_fine
from adaptiveembed.structure.space import every_prefix as every_prefix

__version__: str
