"""Named shapes of tensors and arrays: the only place where shape strings are written.

The test run checks every annotated call against them (``tests/conftest.py``). Axes of the same name
must be equal within one call. The two sides of a comparison carry different axis names on purpose:
our own error, which says what to do, then speaks first.
"""

import numpy as np
from jaxtyping import Bool, Float, Float16, Float32, Float64, Int64, Shaped, UInt8
from torch import Tensor

# Sets of one modality.
CandidateVectors = Float[Tensor, "batch candidates dim"]
ActiveVectors = Float[Tensor, "batch capacity dim"]
SetVectors = Float[Tensor, "capacity dim"]
ItemIndices = Int64[Tensor, " items"]
ItemCounts = Int64[Tensor, " items"]

# Media as an encoder describes them.
GlobalFeatures = Float[Tensor, "items width"]

# Two sides of a comparison.
QuerySets = Float[Tensor, "queries query_capacity query_dim"]
GallerySets = Float[Tensor, "gallery gallery_capacity gallery_dim"]
ScoreMatrix = Float[Tensor, "queries gallery"]
QueryPairs = Float[Tensor, "pairs query_capacity query_dim"]
GalleryPairs = Float[Tensor, "pairs gallery_capacity gallery_dim"]
PairScores = Float[Tensor, " pairs"]
Responses = Float[Tensor, "queries query_capacity gallery"]
Cosines = Float[Tensor, "*pairs rows columns"]
AssignmentTotals = Float[Tensor, "*pairs"]
Assignments = Int64[Tensor, "*pairs rows"]

# Arrays: galleries, scores and ranks.
CandidateArray = Float[np.ndarray, "batch candidates dim"]
SetArray = Float[np.ndarray, "capacity dim"]
GalleryRows = Float[np.ndarray, "positions items dim"]
GalleryIndices = Int64[np.ndarray, " items"]
ScoreArray = Float[np.ndarray, "queries items"]
ScoreArray32 = Float32[np.ndarray, "queries items"]
Positives = Int64[np.ndarray, "rows_of_positives max_positives"]
PositiveCounts = Int64[np.ndarray, "*tables queries positives"]
PositiveScores = Float[np.ndarray, "*tables queries positives"]
PositiveMask = Bool[np.ndarray, "*tables queries positives"]
Ranks = Int64[np.ndarray, "*tables queries positives"]
RankTable = Int64[np.ndarray, "selections queries positives"]
PerQuery = Float64[np.ndarray, "*tables queries"]
QueryIndices = Int64[np.ndarray, " queries"]
TopIndices = Int64[np.ndarray, "queries k"]
TopScores = Float32[np.ndarray, "queries k"]

# What the policy reads, and what it says (Stage II).
SingleVectors = Float[Tensor, "rows dim"]
BankPlaces = Int64[Tensor, " batch"]
BankScores = Float[Tensor, "batch bank"]
FeedbackItems = Int64[Tensor, "batch depth"]
FeedbackScores = Float[Tensor, "batch depth"]
StateFeedback = Float[Tensor, "batch candidates depth"]
StatesItems = Int64[Tensor, "batch states depth"]
StatesScores = Float[Tensor, "batch states depth"]
Feedback = Float[Tensor, "batch states candidates depth"]
HiddenCandidates = Float[Tensor, "batch candidates width"]
CandidateMask = Bool[Tensor, "batch candidates"]
StateLogits = Float[Tensor, "batch states actions"]
StateProbabilities = Float[Tensor, "batch states actions"]
ActionProbabilities = Float[Tensor, "batch actions"]
ActionLogits = Float[Tensor, "*states actions"]
ActionUtilities = Float[Tensor, "*states actions"]
StateValues = Float[Tensor, "*states"]
StateUtilities = Float[Tensor, "samples states actions"]
NodePlaces = Int64[Tensor, " batch"]
EdgePlaces = Int64[Tensor, " edges"]
ActionMask = Bool[Tensor, "states actions"]
PositionMask = Bool[Tensor, "states candidates"]
NodeValues = Float64[np.ndarray, "nodes samples"]
EdgeUtilities = Float64[np.ndarray, "edges samples"]
Invariants = Float[Tensor, "batch features"]
ItemFacts = Float[Tensor, " batch"]
FeedbackArray = Float32[np.ndarray, "candidates depth"]
BestProbabilities = Float64[Tensor, "batch states"]
BestExpansions = Int64[Tensor, "batch states"]
CurveValues = Float64[np.ndarray, " thresholds"]

# What the training-free encoder computes with.
ProjectionMatrix = Float32[Tensor, "inputs outputs"]
Biases = Float32[Tensor, " outputs"]
PixelArray = UInt8[np.ndarray, "height width 3"]
Planes = Shaped[Tensor, "pictures channels height width"]
SquarePixels = UInt8[np.ndarray, "side side 3"]
PartPlanes = Float32[Tensor, "pictures numbers part_rows part_columns"]
WholePlanes = Float32[Tensor, "pictures numbers whole_rows whole_columns"]
WavePlanes = Float32[Tensor, "pictures waves height width"]
ColourTable = Float32[Tensor, "steps colours"]
CellFeatures = Float32[Tensor, "pictures rows columns features"]
CellDetails = Float32[Tensor, "pictures rows columns details"]
SpansOfCells = Float32[Tensor, "videos spans rows columns features"]
PlanesOverTime = Shaped[Tensor, "videos frames channels height width"]
CellsOverTime = Float32[Tensor, "videos times rows columns features"]
SampleArray = Float32[np.ndarray, " samples"]
Samples = Float32[Tensor, " samples"]
Spectra = Float32[Tensor, "frames frequencies"]
MelFilters = Float32[Tensor, "frequencies bands"]
Bands = Float32[Tensor, "frames bands"]
FeatureVectors = Float32[Tensor, "*items width"]
PieceVectors = Float32[Tensor, "pieces width"]
PieceVector = Float32[Tensor, " width"]
Places = Float32[Tensor, "*placed axes"]
PlaceFeatures = Float32[Tensor, "*placed features"]
Descriptions = Float32[Tensor, "batch states inputs"]
StateDetails = Float32[Tensor, "batch states details"]
LocatedStates = Float32[Tensor, "batch states numbers"]
StatesAndWhole = Float32[Tensor, "batch states_and_one inputs"]
StateVectors = Float32[Tensor, "batch states width"]
StateMask = Bool[Tensor, "batch states"]
ItemDescriptions = Float32[Tensor, "states inputs"]
PartMeans = Float32[Tensor, "parts inputs"]
Summaries = Float32[Tensor, "batch numbers"]

# What pretrained encoders of pictures and videos read.
FrameArray = UInt8[np.ndarray, "frames height width 3"]
NormalizedFrames = Float32[np.ndarray, "frames height width 3"]
ResizedFrames = UInt8[np.ndarray, "frames new_height new_width 3"]
PatchArray = Float32[np.ndarray, "patches numbers"]
TokenIds = Int64[Tensor, "batch tokens"]
TokenMask = Bool[Tensor, "batch tokens"]
TokenStates = Float[Tensor, "batch tokens width"]
TokenPositions = Int64[Tensor, "3 batch tokens"]

# The embedder of Stage I.
States = Float[Tensor, "batch states width"]
BatchFeatures = Float[Tensor, "batch width"]
QueryOutputs = Float[Tensor, "batch learned query_width"]
PositionVectors = Float[Tensor, "batch dim"]
DropoutKeys = Int64[Tensor, " batch"]
ItemHidden = Float[Tensor, "batch *hidden"]
ItemMask = Bool[Tensor, "batch numbers"]
DrawnNumbers = Int64[Tensor, "batch numbers"]
ShorterStates = Float[Tensor, "batch fewer width"]
ShorterMask = Bool[Tensor, "batch fewer"]
Vectors = Float[Tensor, "*items dim"]
SecondMoments = Float[Tensor, "rows columns"]
MapMean = Float[Tensor, " width"]
MapMatrix = Float[Tensor, "width dim"]
MappedFeatures = Float[Tensor, "items dim"]
BudgetScores = Float[Tensor, "budgets queries gallery"]
ScoreMask = Bool[Tensor, "queries gallery"]

# Losses.
Loss = Float[Tensor, ""]

# Stored features: the place of every item, and rows of numbers.
ItemArray = Int64[np.ndarray, " _items"]
FeatureRows = Float16[np.ndarray, "_rows width"]
