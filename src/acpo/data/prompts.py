"""Turn a problem into the messages that a model is given: text for base models, turns for chat models."""

from typing import Literal

Style = Literal["plain", "base", "chat"]
Message = dict[str, str]

BASE_PREAMBLE = (
    "Below is a conversation between a user and a careful assistant. The user poses a problem. The assistant works it "
    "out step by step between <think> and </think>, and then states the result for the user. "
)
RAW_TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message.content }}{% endfor %}"
"""Template of `plain` and `base` prompts: the text as it is, begun by the start token of a model that has one."""
CHAT_SYSTEM = (
    "You are a careful assistant. Work the problem out step by step between <think> and </think>, "
    "and then state the result. "
)


def messages(question: str, instruction: str, style: Style) -> list[Message]:
    """Write the messages of one problem.

    Args:
        question: The problem's own text.
        instruction: How the task wants the final answer written.
        style: `plain`: the question alone (the embedded engine). `base`: one piece of text that a base model continues,
            for use without a chat template. `chat`: a system and a user turn, for the model's own template.

    Returns:
        Messages with `role` and `content`; a base model's text is the content of the only one.
    """
    if style == "plain":
        return [{"role": "user", "content": question}]
    if style == "base":
        text = f"{BASE_PREAMBLE}{instruction}\n\nUser: {question}\n\nAssistant: <think>"
        return [{"role": "user", "content": text}]
    return [{"role": "system", "content": CHAT_SYSTEM + instruction}, {"role": "user", "content": question}]


def chat_template(style: Style) -> str | None:
    """Return the template that turns messages of a style into a model's input; None is the model's own."""
    return None if style == "chat" else RAW_TEMPLATE
