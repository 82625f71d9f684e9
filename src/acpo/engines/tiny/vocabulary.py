"""Words to token ids and back, and the same vocabulary as a transformers tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acpo.tasks.base import EmbeddedTask

PADDING, START = "<pad>", "<bos>"


@dataclass(frozen=True)
class Vocabulary:
    """The words of a task; ids 0 and 1 are padding and the start of a prompt."""

    words: tuple[str, ...]
    end_words: frozenset[str]

    @classmethod
    def of(cls, task: EmbeddedTask) -> "Vocabulary":
        """Take the words of an embedded task."""
        return cls((PADDING, START, *task.vocabulary), task.end_words)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def ids(self) -> dict[str, int]:
        """Token id of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @property
    def end_tokens(self) -> frozenset[int]:
        """Ids of the words that end a response."""
        ids = self.ids
        return frozenset(ids[word] for word in self.end_words)

    def encode_prompts(self, prompts: Sequence[str]) -> list[list[int]]:
        """Turn prompts into token ids, each begun by the start token.

        Raises:
            ValueError: a word that is not in the vocabulary.
        """
        return [[1, *ids] for ids in self.encode(prompts)]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids.

        Raises:
            ValueError: a word that is not in the vocabulary.
        """
        ids = self.ids
        try:
            return [[ids[word] for word in text.split()] for text in texts]
        except KeyError as error:
            raise ValueError(f"the word {error.args[0]!r} is not in the task's vocabulary") from error

    def decode(self, tokens: Sequence[int]) -> str:
        """Turn token ids into text."""
        return " ".join(self.words[token] for token in tokens)

    def save_tokenizer(self, directory: Path) -> None:
        """Write the vocabulary as a fast tokenizer that `AutoTokenizer` loads.

        An end word is part of the response that it ends, but a tokenizer's end token is left out of decoded text: here
        it is the padding, and `generation_config.json` names the words that end a response.
        """
        from tokenizers import Tokenizer, models, pre_tokenizers, processors
        from transformers import PreTrainedTokenizerFast

        backend = Tokenizer(models.WordLevel(self.ids, unk_token=PADDING))
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        backend.post_processor = processors.TemplateProcessing(single=f"{START} $A", special_tokens=[(START, 1)])
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=backend,
            pad_token=PADDING,
            bos_token=START,
            eos_token=PADDING,
            unk_token=PADDING,
        )
        tokenizer.save_pretrained(directory)
