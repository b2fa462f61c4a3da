"""Loads files of examples with `datasets` and takes one real training step on each with `trl`; prints what came of it.

    python train_examples.py FOLDER

FOLDER holds `dpo*`, `kto*` and `sft*` files, as JSON lines or Parquet. The model is a Llama of two layers and the
tokenizer knows bytes only: both are made here, so nothing is fetched.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, load_dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, SFTConfig, SFTTrainer

TRAINERS: dict[str, Any] = {
    "dpo": (DPOTrainer, DPOConfig), "kto": (KTOTrainer, KTOConfig), "sft": (SFTTrainer, SFTConfig),
}  # fmt: skip

TEMPLATE = """\
{%- if tools %}<tools>{{ tools | tojson }}</tools>
{% endif -%}
{%- for message in messages %}<{{ message.role }}>{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}<call>{{ call.function.name }} {{ call.function.arguments | tojson }}</call>
{%- endfor %}</s>
{% endfor -%}
{%- if add_generation_prompt %}<assistant>{% endif -%}
"""


def make_tokenizer() -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: number for number, word in enumerate(["</s>", "<pad>", *letters])}
    byte_level = Tokenizer(models.BPE(vocab=words, merges=[]))
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    special = {"eos_token": "</s>", "pad_token": "<pad>"}
    made = PreTrainedTokenizerFast(tokenizer_object=byte_level, **special)
    made.chat_template = TEMPLATE
    return made


def make_model(tokenizer: PreTrainedTokenizerFast, folder: Path) -> LlamaForCausalLM:
    """A model that lies in *folder*: DPO loads its reference model from where the model came from."""
    torch.manual_seed(7)
    made = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=2,
            num_attention_heads=2, max_position_embeddings=32_768, eos_token_id=0, pad_token_id=1,
        )
    )  # fmt: skip
    made.save_pretrained(folder)
    return LlamaForCausalLM.from_pretrained(folder)


def load(path: Path) -> Dataset:
    return load_dataset("parquet" if path.suffix == ".parquet" else "json", data_files=str(path), split="train")


def take_step(kind: str, rows: Dataset, scratch: Path) -> dict[str, Any]:
    """One optimizer step; what it logged, and the share of the weights that moved."""
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, scratch / "model")
    before = [weight.detach().clone() for weight in model.parameters()]
    trainer, config = TRAINERS[kind]
    values = config(
        output_dir=str(scratch), max_steps=1, per_device_train_batch_size=2, max_length=None, learning_rate=0.01,
        lr_scheduler_type="constant", logging_steps=1, report_to=[], save_strategy="no", bf16=False, use_cpu=True,
    )  # fmt: skip
    made = trainer(model=model, args=values, train_dataset=rows, processing_class=tokenizer)
    made.train()
    moved = sum(bool((new != old).any()) for new, old in zip(model.parameters(), before, strict=True))
    logged: dict[str, Any] = made.state.log_history[0]
    told = {"loss": logged["loss"], "moved": moved / len(before), "logged": sorted(logged)}
    return {**told, "steps": made.state.global_step}


def main() -> None:
    folder, found = Path(sys.argv[1]), {}
    for path in sorted((*folder.glob("*.jsonl"), *folder.glob("*.parquet"))):
        rows, kind = load(path), path.name[:3]
        told = {"columns": rows.column_names, "rows": list(rows)}
        found[path.name] = {**told, **take_step(kind, rows, folder / "scratch")}
    print(json.dumps(found))  # noqa: T201  its output


if __name__ == "__main__":
    main()
