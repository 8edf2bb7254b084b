"""OpenEnv and TRL over awaited rows. `make test-trainers` runs this file."""

import asyncio
import atexit
import importlib
import json
from pathlib import Path

import pytest

import cartwheel

pytestmark = [
    pytest.mark.trainers,
    pytest.mark.timeout(900),  # OpenEnv and TRL are imported, by processes, too
    pytest.mark.filterwarnings("default"),  # of the packages
]
EXAMPLES = Path(__file__).parents[3] / "examples/trainers"


@pytest.fixture
def example(monkeypatch):
    """Imports an example, which its worker processes can import as well."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def test_sessions_of_openenv_wait_for_rows_and_find_every_secret(example):
    rows = example("openenv_rows")
    ends = asyncio.run(rows.main(sessions=8, rows=3))
    assert [found for found, _ in ends] == list(range(8))

    alone = []  # the same environments, without server and rows
    for secret in range(8):
        env, low, high = rows.Guessing(), 0, 9
        env.reset(seed=secret)
        while not (said := env.step(rows.Guess(number=(low + high) // 2))).done:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if said.text == "more" else (low, middle - 1)
        alone.append(env.state.step_count)
    assert [count for _, count in ends] == alone


def test_a_crash_ends_a_step_of_one_session_of_openenv_and_the_server_lives(example):
    rows = example("openenv_rows")

    async def main():
        async with (
            cartwheel.AwaitableEnvs([rows.Guessing] * 2) as envs,
            rows.Served(envs) as url,
            rows.GenericEnvClient(base_url=url, message_timeout_s=600) as crashing,
            rows.GenericEnvClient(base_url=url, message_timeout_s=600) as other,
        ):
            await asyncio.gather(crashing.reset(seed=1), other.reset(seed=2))
            with pytest.raises(RuntimeError, match="died during call"):
                await crashing.step({"number": -1})
            assert (await other.step({"number": 2})).done
            assert (await crashing.reset(seed=1)).observation["text"].startswith("guess")
            assert (await crashing.step({"number": 1})).reward == 1.0

    asyncio.run(main())


def tokenizer():
    """One token for each byte, with the chat template of Qwen3, made on the spot."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_chat_template

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tags = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
    letters = pre_tokenizers.ByteLevel.alphabet()
    numbers = {token: number for number, token in enumerate([*special, *sorted(letters)])}
    inner = Tokenizer(models.BPE(vocab=numbers, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(special)
    inner.add_tokens(tags)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=qwen3_chat_template,
    )


def test_the_rollouts_of_trl_call_tools_of_rows(example, tmp_path, monkeypatch):
    """A tiny model of random weights, whose first answers are given: it cannot call a tool yet."""
    import torch
    from datasets import Dataset
    from huggingface_hub import constants
    from tqdm import tqdm
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from trl import GRPOConfig, GRPOTrainer
    from trl.trainer.utils import shutdown_event_loop_in_daemon

    # No threads that stay; a test has nothing to report.
    monkeypatch.setattr(tqdm, "monitor_interval", 0)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    trl_rows = example("trl_rows")
    tokens = tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokens),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        eos_token_id=tokens.eos_token_id,
        pad_token_id=tokens.pad_token_id,
    )

    class Scripted(Qwen3ForCausalLM):
        """Calls the tool, each row with another number, and then says that it is done."""

        def generate(self, input_ids=None, **_):
            prompts = tokens.batch_decode(input_ids)
            answers = []
            for row, prompt in enumerate(prompts):
                call = json.dumps({"name": "pack", "arguments": {"count": row % 3}})
                called = "<tool_response>" in prompt
                said = "done" if called else f"<tool_call>\n{call}\n</tool_call>"
                answers.append(tokens.encode(said + "<|im_end|>", add_special_tokens=False))
            longest = max(map(len, answers))
            padded = [one + [tokens.pad_token_id] * (longest - len(one)) for one in answers]
            return torch.cat([input_ids, torch.tensor(padded)], dim=1)

    rows = trl_rows.Loop([trl_rows.Shelves] * 4)
    trainer = None
    try:
        model = Scripted(config)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        prompt = [{"role": "user", "content": "Pack all bolts. "}]
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokens,
            train_dataset=Dataset.from_list([{"prompt": prompt, "seed": seed} for seed in (0, 1)]),
            environment_factory=lambda: trl_rows.Warehouse(rows),
            args=GRPOConfig(
                output_dir=str(tmp_path),
                per_device_train_batch_size=4,
                num_generations=4,
                max_steps=2,
                max_completion_length=512,
                learning_rate=0.1,
                logging_steps=1,
                use_cpu=True,
                bf16=False,
                report_to="none",
                save_strategy="no",
            ),
        )
        trainer.train()
        # 0, 1, 2 and 0 bolts, with a mean of 3/4, however the prompts are dealt.
        rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
        assert rewards == pytest.approx([0.75] * 2)
        assert any(
            not torch.equal(one, other)
            for one, other in zip(before, model.parameters(), strict=True)
        )
    finally:
        rows.close()
        if trainer is not None:  # TRL does the first at the end of the program
            atexit.unregister(shutdown_event_loop_in_daemon)
            shutdown_event_loop_in_daemon(trainer.async_loop_thread, trainer.async_loop)
            trainer.async_loop.close()
