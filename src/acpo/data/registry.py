"""Every file that data sets are made from, pinned by origin, revision, size and hash."""

from dataclasses import dataclass
from typing import Literal

from acpo.errors import ConfigError, nearest

# The only place that says where a repository's files are served.
URL_TEMPLATES = {
    "git": "https://raw.githubusercontent.com/{repository}/{revision}/{path}",
    "hub": "https://huggingface.co/datasets/{repository}/resolve/{revision}/{path}",
}

ORZ_CITATION = "Hu et al. (2025), Open-Reasoner-Zero, arXiv:2503.24290"
HITAB_CITATION = "Cheng et al. (2022), HiTab: A Hierarchical Table Dataset, ACL 2022"
QWEN_CITATION = "Yang et al. (2024), Qwen2.5-Math Technical Report, arXiv:2409.12122 (packaging)"
_ORZ = "3fdd9a07b4fb01e06005e6e74fc56690cde8a341"
_QWEN = "a45202bd16f1ec06f433442dc1152d0074773465"
_HITAB = "e04267b2ce641163dfafd907c46afd378a8f40ac"
CONTEST_LICENCE = "MIT (packaging); problem texts (c) MAA, evaluation only"


@dataclass(frozen=True)
class Source:
    """One pinned file.

    Attributes:
        key: Its name here.
        repository: `owner/name` at its host.
        revision: Commit or revision.
        path: Path inside the repository.
        host: Which of URL_TEMPLATES serves it.
        size: Bytes, where known.
        sha256: Hash of the content, where known.
        git_blob: Git's id of the content (sha1 over a header and the content), where known.
        rows: Records expected.
        licence: Terms of use.
        citation: Whom to cite.
        profile: `paper` (what its numbers used), `corrected`, or `both`.
        note: What a user should know.
    """

    key: str
    repository: str
    revision: str
    path: str
    rows: int
    licence: str
    citation: str
    host: Literal["git", "hub"] = "git"
    size: int | None = None
    sha256: str | None = None
    git_blob: str | None = None
    profile: Literal["paper", "corrected", "both"] = "both"
    note: str = ""

    @property
    def relative_path(self) -> str:
        """Where the file lies in a mirror and in the store of raw files."""
        return f"{self.repository}/{self.revision}/{self.path}"

    @property
    def url(self) -> str:
        """Where the file is downloaded from."""
        return URL_TEMPLATES[self.host].format(repository=self.repository, revision=self.revision, path=self.path)

    @property
    def expected(self) -> str:
        """The hash that the file must have, with its kind."""
        return f"sha256 {self.sha256}" if self.sha256 else f"git blob {self.git_blob}"


_SOURCES = (
    Source(
        "orz57k", "Open-Reasoner-Zero/Open-Reasoner-Zero", _ORZ, "data/orz_math_57k_collected.json", 56_878, "MIT",
        ORZ_CITATION,
        git_blob="08812d4a47aadf8fa80a43f11431e6d41ba55b64",
    ),
    Source(
        "orz57k_prefix", "avecplezir/Open-Reasoner-Zero", "ccb6bd614e4e1cd04f2a21467f4f0a4c15d87fe5",
        "data/orz_math_57k_collected.json", 1_785, "MIT", ORZ_CITATION, size=884_736,
        sha256="563af1861cfcd0b61c08133621aa12537e489ebee60f5674eb298627ee3540f9",
        note="a copy of orz57k cut off in the middle of a record, for trials without the full file",
    ),
    Source(
        "math500", "hkust-nlp/simpleRL-reason", "cf1c7858bfc145a27aa733e75d930d34f0d318a6",
        "examples/simplelr_math_eval/data/math500/test.jsonl", 500, "MIT",
        "Hendrycks et al. (2021), MATH; Lightman et al. (2023), arXiv:2305.20050", size=446_564,
        sha256="35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
    ),
    Source(
        "aime24", "QwenLM/Qwen2.5-Math", _QWEN, "evaluation/data/aime24/test.jsonl", 30, CONTEST_LICENCE, QWEN_CITATION,
        size=156_944, sha256="af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac", profile="corrected",
    ),
    Source(
        "aime24_released", "Open-Reasoner-Zero/Open-Reasoner-Zero", _ORZ, "data/eval_data/aime2024.json", 30,
        CONTEST_LICENCE,
        ORZ_CITATION, size=14_741, sha256="ef02255e61539115f6274a0765ff10076df416db5f90d41500d472cb5184e560",
        profile="paper",
        note="one wrong gold (2024 AIME I problem 8: 480, right is 197) caps the score at 29/30",
    ),
    Source(
        "aime25", "armenjeddi/mcd", "76771f969048ebd77a1b4261b0a3469192c6f92a", "evaluation/data/aime25/test.jsonl", 30,
        CONTEST_LICENCE, "MAA, AIME 2025", size=33_113,
        sha256="19a9f25a12e89abaeea9f7e214f8b6f6eae43285e9d8df7a3818ca0408df4b07",
    ),
    Source(
        "amc", "sail-sg/understand-r1-zero", "dfca49dd460ee7cc8e4a5a162c876a7fd6993b87",
        "datasets/evaluation_suite/amc/data-00000-of-00001.arrow", 83, CONTEST_LICENCE,
        "Liu et al. (2025), Understanding R1-Zero-Like Training, arXiv:2503.20783", size=26_576,
        sha256="5e16d28683b95782686413eadd12560d051b2d4ac8aef456b500891ccabd5233", profile="paper",
        note="43 problems of AMC12 2022 and 40 of 2023: what the paper's AMC numbers fit",
    ),
    Source(
        "amc23", "QwenLM/Qwen2.5-Math", _QWEN, "evaluation/data/amc23/test.jsonl", 40, CONTEST_LICENCE, QWEN_CITATION,
        size=27_631, sha256="43707e1ca784602d8479de24ee8ce36609dbebc46dd152b0b12a46611aa898a4", profile="corrected",
    ),
    Source(
        "minerva", "QwenLM/Qwen2.5-Math", _QWEN, "evaluation/data/minerva_math/test.jsonl", 272, "MIT",
        "Lewkowycz et al. (2022), Minerva, arXiv:2206.14858", size=247_267,
        sha256="0e656b430d3a0a1dab6aa853f453ba3805e28e2cabe4fc72486a897cc09d8ba2",
    ),
    Source(
        "olympiad", "QwenLM/Qwen2.5-Math", _QWEN, "evaluation/data/olympiadbench/test.jsonl", 675, "MIT",
        "He et al. (2024), OlympiadBench, arXiv:2402.14008", size=1_493_870,
        sha256="bb8c1e38a16ea9eacb77530315a674d883f267fbff79183effc53681b4fcc416",
        note="15 questions start from the result of another question that is not given (T = TNYWR)",
    ),
    Source(
        "hitab_train", "microsoft/HiTab", _HITAB, "data/train_samples.jsonl", 7_417, "C-UDA 1.0", HITAB_CITATION,
        git_blob="11c98debd75d82183818f82e31170cbb207aa5bc",
    ),
    Source(
        "hitab_dev", "microsoft/HiTab", _HITAB, "data/dev_samples.jsonl", 1_671, "C-UDA 1.0", HITAB_CITATION,
        size=1_259_029,
        sha256="567530ce270422d1f1bde767a732f5cb44ef2c717eacdfe43cb3ca6f990c2475",
    ),
    Source(
        "hitab_test_released", "microsoft/HiTab", _HITAB, "data/test_samples.jsonl", 1_584, "C-UDA 1.0", HITAB_CITATION,
        size=1_201_457, sha256="cfb8296a23d4481757e1e9f63874085c90bc498386aa0b522c9ef3df65c1f339", profile="paper",
    ),
    Source(
        "hitab_test", "microsoft/HiTab", _HITAB, "data/test_samples_qualitycheck.jsonl", 1_584, "C-UDA 1.0",
        HITAB_CITATION,
        size=1_203_596, sha256="989ae7be8d949bef659644c713d5db61275dae09c7198819978fa02cb3251165", profile="corrected",
        note="the data set's authors corrected questions or answers of 229 test samples",
    ),
    Source(
        "hitab_tables", "microsoft/HiTab", _HITAB, "data/tables.zip", 3_597, "C-UDA 1.0", HITAB_CITATION,
        git_blob="a884ae60aa96fb6b76b3198fa135f3a384548122", note="rows counts tables",
    ),
    Source(
        "hitab_test_tables", "MJinXiang/Reasoning-Table", "571d733ac17cded395ba910bdfa213319ea217bc",
        "evaluation/data/hitab/test.jsonl", 1_584, "Apache-2.0 (packaging), C-UDA 1.0 (content)", HITAB_CITATION,
        size=4_037_288,
        sha256="2c304c574a00cc49eae01681d9cf4e34b9fb752c3a636a301586c2464d2bb981",
        note="the test samples with their tables: lets the test splits be made without tables.zip",
    ),
    Source(
        "countdown", "Jiayi-Pan/Countdown-Tasks-3to4", "408f70d177020686d34a56bba5952feb45aaaee4",
        "data/train-00000-of-00001.parquet", 490_364, "not stated by its author", "Pan et al. (2025), "
        "TinyZero", host="hub",
        size=2_845_904, sha256="a1b37bea0f439c858b11b908daa682e521f13f9592f1866b08650f58b730d126",
        note="rows is approximate; the first 327,680 train, the next 1,024 test",
    ),
)  # fmt: skip
SOURCES = {source.key: source for source in _SOURCES}


def source(key: str) -> Source:
    """Return a pinned file by its key.

    Raises:
        ConfigError: no such key; names the nearest.
    """
    if key not in SOURCES:
        raise ConfigError(f"unknown data source {key!r}; {nearest(key, SOURCES)}")
    return SOURCES[key]
