#!/usr/bin/env python3
"""A Llama of Hugging Face transformers that reads a prompt and generates, by PyTorch's own attention and by two specs.

  python runtime/examples/llama.py                                          random weights, 8 layers, 32 heads over 8
  python runtime/examples/llama.py --model PATH --tokens 4096               a model that is there
  python runtime/examples/llama.py sdpa lacuna:bsfa --modes eager --json    other specs, a row of JSON each

For each implementation and mode: the time of the prompt (prefill), the time of a token behind it, and how far the logits of the
prompt's last token and of the last token behind it are from those of the first row, relative to their largest; for these all are
given the same tokens. In the mode "eager" also what each generates by itself. What is not possible is a row that says why.

  eager     as transformers calls the model; the cache grows with every token
  graph     prompt and token as CUDA graphs; the cache has room for all tokens
  compile   prompt and token by torch.compile, each in one graph; the cache as before

Needs PyTorch, transformers and a GPU; --device cpu shows eager and compile without one.
"""
import argparse
import inspect
import json
import time

import lacuna.transformers
import torch
import transformers

MODES = ("eager", "graph", "compile")
SHOWN = 12  # tokens of its own
WARM_UP = 2  # tokens behind the prompt that are not timed
# Newer versions call the argument "cache".
CACHE = "cache" if "cache" in inspect.signature(transformers.LlamaForCausalLM.forward).parameters else "past_key_values"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("implementations", nargs="*", default=["sdpa", "lacuna:dense", "lacuna:cascade"])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, help="(default: all)")
    parser.add_argument("--model", help="a folder or name for from_pretrained; without it the weights are random")
    parser.add_argument("--layers", type=int, default=8, help="of random weights (default: 8)")
    parser.add_argument("--tokens", type=int, default=16384, help="of the prompt (default: 16384)")
    parser.add_argument("--generate", type=int, default=128, help="tokens behind it that are timed (default: 128)")
    parser.add_argument("--repeats", type=int, default=3, help="prefills that are timed; the fastest counts (default: 3)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="(default: cuda)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def load(args):
    dtype = torch.bfloat16 if args.device == "cuda" else torch.float32
    if args.model:
        return transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype).to(args.device).eval()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(hidden_size=4096, intermediate_size=4096, num_hidden_layers=args.layers, head_dim=128,
                                      num_attention_heads=32, num_key_value_heads=8, vocab_size=1024,
                                      max_position_embeddings=131072)
    with torch.device(args.device):
        return transformers.LlamaForCausalLM(config).to(dtype).eval()


def seconds(call):
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    wait()
    begin = time.perf_counter()
    result = call()
    wait()
    return time.perf_counter() - begin, result


def captured(call):
    """A replay of call(), which has run before; what it returns is overwritten by the next one."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay():
        graph.replay()
        return result

    return replay


def compiled(model):
    torch._dynamo.reset()  # of the implementation before
    return torch.compile(model, fullgraph=True, dynamic=False)


def measure_prompt(model, prompt, mode, repeats):
    """(ms of the first call, of the fastest, logits of the last token)"""
    run = compiled(model) if mode == "compile" else model
    call = lambda: run(prompt, logits_to_keep=1).logits[:, -1]  # noqa: E731
    first_s, logits = seconds(call)  # compiles kernels
    if mode == "graph":
        call = captured(call)
    fastest_s = min(seconds(call)[0] for _ in range(repeats))
    return first_s * 1e3, fastest_s * 1e3, call().float() if mode == "graph" else logits.float()


def measure_tokens(model, prompt, following, mode):
    """(ms of a token, logits of the last one) of `following` [1, n], one by one behind the prompt"""
    room = prompt.shape[1] + following.shape[1]
    cache = transformers.DynamicCache() if mode == "eager" else transformers.StaticCache(config=model.config, max_cache_len=room)
    model(prompt, logits_to_keep=1, **{CACHE: cache})
    run, token = compiled(model) if mode == "compile" else model, following[:, :1].clone()
    step = lambda: run(token, **{CACHE: cache}).logits[:, -1]  # noqa: E731

    def go_through(columns):
        for column in columns:
            token.copy_(following[:, column:column + 1])
            logits = step()
        return logits

    go_through(range(WARM_UP))
    if mode == "graph":
        step = captured(step)
    total_s, logits = seconds(lambda: go_through(range(WARM_UP, following.shape[1])))
    return total_s / (following.shape[1] - WARM_UP) * 1e3, logits.float()


@torch.no_grad()
def measure(model, implementation, mode, prompt, following, repeats):
    """(facts, logits [2, vocabulary] of the last token of the prompt and of the last one behind it)"""
    model.set_attn_implementation(implementation)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    first_ms, prefill_ms, at_prompt = measure_prompt(model, prompt, mode, repeats)
    token_ms, at_end = measure_tokens(model, prompt, following, mode)
    facts = {"first_call_ms": round(first_ms, 3), "prefill_ms": round(prefill_ms, 3), "token_ms": round(token_ms, 3)}
    if torch.cuda.is_available():
        facts["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 3)
    if mode == "eager":
        generated = model.generate(prompt, max_new_tokens=SHOWN, min_new_tokens=SHOWN, do_sample=False, pad_token_id=0)
        facts["generated"] = generated[0, prompt.shape[1]:].tolist()
    return facts, torch.cat([at_prompt, at_end])


def difference(logits, reference):
    return float((logits - reference).abs().max() / reference.abs().max())


def show(row, as_json):
    if as_json:
        print(json.dumps(row), flush=True)
    elif "error" in row:
        print(f"{row['implementation']:20s} {row['mode']:8s} not possible: {row['error']}", flush=True)
    else:
        print(f"{row['implementation']:20s} {row['mode']:8s} prefill {row['prefill_ms']:8.1f} ms   a token {row['token_ms']:6.2f} ms   "
              f"logits differ by {row['logits_difference']:.1e}, behind {row['step_difference']:.1e}", flush=True)
        if "generated" in row:
            print(f"{'':20s} generates {' '.join(map(str, row['generated']))}", flush=True)


def main():
    args = arguments()
    lacuna.transformers.register()
    model = load(args)
    count = args.tokens + args.generate + WARM_UP
    tokens = torch.randint(1, model.config.vocab_size, (1, count), generator=torch.Generator().manual_seed(1)).to(args.device)
    prompt, following = tokens[:, :args.tokens].contiguous(), tokens[:, args.tokens:].contiguous()
    reference = None
    for mode in args.modes:
        for implementation in args.implementations:
            row = {"implementation": implementation, "mode": mode}
            try:
                facts, logits = measure(model, implementation, mode, prompt, following, args.repeats)
            except Exception as error:  # a row of its own, and the others go on
                row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            else:
                reference = logits if reference is None else reference
                row |= {**facts, "logits_difference": difference(logits[0], reference[0]), "step_difference": difference(logits[1], reference[1])}
            show(row, args.json)


if __name__ == "__main__":
    main()
