#!/usr/bin/env python3
"""A Llama of Hugging Face transformers that reads a prompt and generates, by two specs and by PyTorch's own attention.

  python runtime/examples/llama.py                                  random weights, 8 layers, 32 heads over 8
  python runtime/examples/llama.py --model PATH --prompt 4096       a model that is there
  python runtime/examples/llama.py --tokens 16384 --json

For each implementation: the time of the prompt (prefill), the time of a generated token, and how far the logits of the
prompt's last token are from those of the first implementation, relative to their largest. Needs PyTorch, transformers and a GPU.
"""
import argparse
import json
import time

import lacuna.transformers
import torch
import transformers


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("implementations", nargs="*", default=["sdpa", "lacuna:dense", "lacuna:bsfa"])
    parser.add_argument("--model", help="a folder or name for from_pretrained; without it the weights are random")
    parser.add_argument("--layers", type=int, default=8, help="of random weights (default: 8)")
    parser.add_argument("--tokens", type=int, default=4096, help="of the prompt (default: 4096)")
    parser.add_argument("--generate", type=int, default=32, help="tokens to generate (default: 32)")
    parser.add_argument("--repeats", type=int, default=3, help="prefills that are timed; the fastest counts (default: 3)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def load(args):
    if args.model:
        return transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16).cuda().eval()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(hidden_size=4096, intermediate_size=4096, num_hidden_layers=args.layers, head_dim=128,
                                      num_attention_heads=32, num_key_value_heads=8, vocab_size=1024,
                                      max_position_embeddings=131072)
    with torch.device("cuda"):
        return transformers.LlamaForCausalLM(config).to(torch.bfloat16).eval()


def seconds(call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    return time.perf_counter() - begin, result


@torch.no_grad()
def measure(model, prompt, implementation, args):
    """(facts, logits of the last token of the prompt)"""
    model.set_attn_implementation(implementation)

    def prefill():
        return model(prompt, logits_to_keep=1, use_cache=False).logits[:, -1].float()

    compiling_s, logits = seconds(prefill)  # compiles kernels
    prefill_s = min(seconds(prefill)[0] for _ in range(args.repeats))

    def generate(count):
        return model.generate(prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0)

    generate(2)
    one_s, many_s = seconds(lambda: generate(1))[0], seconds(lambda: generate(1 + args.generate))[0]
    return {"implementation": implementation, "first_call_ms": compiling_s * 1e3, "prefill_ms": prefill_s * 1e3,
            "token_ms": (many_s - one_s) / args.generate * 1e3, "peak_gib": torch.cuda.max_memory_allocated() / 2**30}, logits


def main():
    args = arguments()
    lacuna.transformers.register()
    model = load(args)
    vocabulary = model.config.vocab_size
    prompt = torch.randint(1, vocabulary, (1, args.tokens), generator=torch.Generator().manual_seed(1)).cuda()
    rows, reference = [], None
    for implementation in args.implementations:
        row, logits = measure(model, prompt, implementation, args)
        reference = logits if reference is None else reference
        row["logits_difference"] = float((logits - reference).abs().max() / reference.abs().max())
        rows.append(row)
        if not args.json:
            print(f"{implementation:20s} prefill {row['prefill_ms']:8.1f} ms   a token {row['token_ms']:6.2f} ms   "
                  f"logits differ by {row['logits_difference']:.1e}", flush=True)
    if args.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
