"""Further SCRIPTS: models of transformers around compiled calls, sizes that change, exports, quantised modules, and uses of torch.compile itself."""

import contextlib
import io

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch_library_scripts import with_gradients
from torch_training_scripts import perceptron, script


def decoder(kind="llama", **more):
    import transformers
    config = {
        "llama": lambda: transformers.LlamaConfig(vocab_size=60, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                                                  num_key_value_heads=2, max_position_embeddings=128, bos_token_id=1, eos_token_id=None, pad_token_id=0, **more),
        "gpt2": lambda: transformers.GPT2Config(vocab_size=60, n_embd=48, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=None, pad_token_id=0,
                                                resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **more),
        "t5": lambda: transformers.T5Config(vocab_size=60, d_model=48, d_ff=96, num_layers=2, num_heads=4, d_kv=12, dropout_rate=0.0, decoder_start_token_id=0,
                                            eos_token_id=None, pad_token_id=0, **more),
    }[kind]()  # fmt: skip
    made = {"llama": transformers.LlamaForCausalLM, "gpt2": transformers.GPT2LMHeadModel, "t5": transformers.T5ForConditionalGeneration}[kind]
    return made(config).eval()


def generated(run, model, **more):
    """Tokens by the model whose forward is compiled."""
    if run.backend != "eager":
        model.forward = torch.compile(model.forward, backend=run.backend)
    words = torch.randint(2, 60, (2, 7))
    make = lambda: model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=8, return_dict_in_generate=True, output_logits=True, **more)  # noqa: E731
    with torch.no_grad():
        made = make()
    return [made.sequences, *(made.logits if more.get("num_beams", 1) == 1 else ())], make


@script("generate-dynamic")
def generate_dynamic(run):
    return generated(run, run(decoder()), do_sample=False)


@script("generate-static")
def generate_static(run):
    """Transformers compiles the steps itself where a cache is static: the configuration names the backend."""
    from transformers import CompileConfig
    model = run(decoder())
    config = CompileConfig(backend=run.backend, mode=None) if run.backend != "eager" else None
    words = torch.randint(2, 60, (2, 7))
    more = {"compile_config": config} if config else {"disable_compile": True}
    make = lambda: model.generate(words, attention_mask=torch.ones_like(words), max_new_tokens=8, cache_implementation="static", do_sample=False,  # noqa: E731
                                  return_dict_in_generate=True, output_logits=True, **more)  # fmt: skip
    if config is not None:
        config._compile_all_devices = True
    made = make()
    return [made.sequences, *made.logits], make


@script("generate-beams")
def generate_beams(run):
    return generated(run, run(decoder("gpt2")), num_beams=3, do_sample=False)


@script("generate-seq2seq")
def generate_seq2seq(run):
    return generated(run, run(decoder("t5")), do_sample=False)


@script("cache-by-hand")
def cache_by_hand(run):
    """A loop of one's own with a static cache, the step compiled, first the prompt and then words one by one."""
    from transformers import StaticCache
    model = run(decoder())
    cache = StaticCache(config=model.config, max_cache_len=32)
    forward = run.compile(model)

    @torch.no_grad()
    def make():
        cache.reset()
        words, place, logits = torch.arange(2, 16).view(2, 7), torch.arange(7), []
        for _ in range(6):
            found = forward(words, past_key_values=cache, position_ids=place[None].expand(2, -1), use_cache=True).logits[:, -1]
            logits.append(found.clone())
            words, place = found.argmax(-1, keepdim=True), place[-1:] + 1
        return logits

    return make(), make


@script("fine-tuning")
def fine_tuning(run):
    """A language model with checkpointed layers, labels that are left out, positions that are not trained."""
    model = run(decoder("gpt2"))
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    model.transformer.wpe.requires_grad_(False)
    forward = run.compile(model)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3)

    def step(words, labels):
        optimizer.zero_grad()
        loss = forward(input_ids=words, labels=labels, use_cache=False).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    losses = []
    for n in (12, 9, 17):
        words = torch.randint(2, 60, (3, n))
        losses.append(step(words, words.masked_fill(torch.rand(3, n) < 0.2, -100)).detach().clone())
    words = torch.randint(2, 60, (3, 12))
    return [*losses, *(p.detach().clone() for p in model.parameters() if p.requires_grad)], lambda: step(words, words)


@script("trainer")
def trainer(run):
    """transformers' Trainer of a model that is compiled in place (its own option takes the names of accelerate's list alone)."""
    import tempfile

    from transformers import Trainer, TrainingArguments
    model = run(decoder("gpt2"))
    if run.backend != "eager":
        model.compile(backend=run.backend)
    rows = [{"input_ids": x, "labels": x} for x in torch.randint(2, 60, (24, 10))]
    with tempfile.TemporaryDirectory() as folder:
        told = TrainingArguments(folder, per_device_train_batch_size=4, max_steps=5, report_to=[], use_cpu=True, disable_tqdm=True, logging_steps=1, save_strategy="no", seed=0)
        made = Trainer(model, told, train_dataset=rows)
        made.train()
        losses = [torch.tensor(entry["loss"]) for entry in made.state.log_history if "loss" in entry]
        told_of = made.evaluate(rows[:7])["eval_loss"]
    return [*losses, torch.tensor(told_of)], None


# Sizes.


@script("marked-sizes")
def marked_sizes(run):
    """Batches and lengths that are marked, within bounds, in training; then any."""
    net = run(nn.TransformerEncoderLayer(24, 4, 48, 0.0, batch_first=True))
    forward = run.compile(lambda x, mask: F.normalize(net(x, src_key_padding_mask=mask).mean(1), dim=-1))
    found = []
    for batch, length in ((4, 7), (3, 9), (6, 12), (2, 5)):
        x, mask = run.normal(batch, length, 24), torch.zeros(batch, length, dtype=torch.bool)
        mask[:, -2:] = True
        for each in (x, mask):
            torch._dynamo.mark_dynamic(each, 0, min=2, max=64)
            torch._dynamo.mark_dynamic(each, 1, min=2, max=128)
        net.zero_grad()
        y = forward(x, mask)
        (y @ y.T).square().mean().backward()
        found += [y.detach(), *(p.grad.clone() for p in net.parameters())]
    return found, None


@script("all-dynamic")
def all_dynamic(run):
    def function(x, y, k):
        n, m = x.shape
        rows = torch.arange(n, dtype=x.dtype)[:, None] / max(n, 1)
        z = torch.cat([x * rows, y[: n // 2].repeat(1, 2)[:, :m]]).view(-1, m)
        pooled = F.avg_pool1d(z[None], 3, 2)[0]
        return pooled, z.topk(min(k, m), -1)[0], F.pad(z, (n % 3, k)), z.unfold(0, 2, 1).sum(-1), torch.linspace(0, 1, n + k, dtype=x.dtype), z.reshape(m, -1)

    compiled, found = run.compile(function, dynamic=True), []
    for n, m, k in ((6, 8, 2), (9, 8, 3), (4, 12, 5), (2, 8, 2), (6, 16, 2)):
        found += compiled(run.normal(n, m), run.normal(n, m), k)
    return found, None


@script("data-sizes")
def data_sizes(run):
    def function(x, words):
        keep = x[x.abs().sum(-1) > 3]
        kinds, back, counts = torch.unique(words, return_inverse=True, return_counts=True)
        sums = torch.zeros(kinds.shape[0], x.shape[1], dtype=x.dtype).index_add_(0, back, x)
        return keep.softmax(-1).mean(0), sums / counts[:, None], torch.repeat_interleave(x, words, 0), x.nonzero().sum(), x[: int(words.max())]

    found = []
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        compiled = run.compile(function)
        for n in (8, 8, 11):
            found += compiled(run.normal(n, 4), torch.randint(4, (n,)))
    return found, None


@script("exported")
def exported(run):
    """By torch.export with open sizes, then compiled, or called as sylvite.from_torch gives it."""
    net = run(nn.Sequential(nn.Conv1d(4, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.GELU(), nn.Conv1d(16, 4, 3, stride=2)))
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=8, max=512)
    program = torch.export.export(net, (run.normal(3, 4, 20),), dynamic_shapes=({0: batch, 2: length},))
    if run.backend == "sylvite":
        import sylvite
        ways = [sylvite.from_torch(program), run.compile(program.module())]
    else:
        ways = [program.module(), run.compile(program.module())]
    with torch.no_grad():
        return [way(x) for x in (run.normal(b, 4, n) for b, n in ((3, 20), (1, 9), (7, 33))) for way in ways], None


# Quantised modules.


@script("dynamic-quantised")
def dynamic_quantised(run):
    net = torch.ao.quantization.quantize_dynamic(perceptron(run, 16, 32, 4).float(), {nn.Linear}, dtype=torch.qint8)
    compiled = run.compile(net)
    with torch.no_grad():
        return [compiled(torch.randn(5, 16)), compiled(torch.randn(8, 16))], None


@script("fake-quantised")
def fake_quantised(run):
    """Training with roundings as an integer type has them."""
    net = perceptron(run, 16, 32, 4)
    scales = [run(torch.rand(p.shape[0]) / 50 + 0.01) for p in net.parameters()]

    def function(x):
        h = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127)
        names = [name for name, _ in net.named_parameters()]
        rounded = {n: torch.fake_quantize_per_channel_affine(p, s.float(), torch.zeros(len(s), dtype=torch.int32), 0, -127, 127) if p.dim() == 2 else p
                   for n, p, s in zip(names, net.parameters(), scales)}  # fmt: skip
        return torch.func.functional_call(net, rounded, (h,))

    return with_gradients(run, function, run.normal(6, 16), module=net)


@script("bytes")
def quantised_bytes(run):
    """Whole numbers of eight bits by hand: weights by groups, two to a byte, and products of i8."""
    def function(x, packed, scales, whole):
        low, high = packed & 15, packed >> 4
        weight = (torch.stack([low, high], -1).flatten(1).to(x.dtype) - 8).view(32, 4, 16) * scales[..., None]
        y = x @ weight.flatten(1).T
        step = y.abs().amax(-1, keepdim=True) / 127
        z = torch._int_mm((y / step).round().to(torch.int8), whole)
        return y, z.to(x.dtype) * step, x.to(torch.float8_e4m3fn).to(x.dtype), x.to(torch.bfloat16).view(torch.int16), (packed.int() << 3 ^ 5) % 7

    compiled = run.compile(function)
    given = run.normal(24, 64), torch.randint(0, 256, (32, 32), dtype=torch.uint8), run.normal(32, 4).abs(), torch.randint(-128, 128, (32, 16), dtype=torch.int8)
    return list(compiled(*given)), lambda: compiled(*given)


# torch.compile itself.


@script("numpy-inside")
def numpy_inside(run):
    @run.compile
    def function(x: np.ndarray, y: np.ndarray):
        z = np.tanh(x @ y.T) + np.linspace(0, 1, y.shape[0])
        return np.where(z > 0, z, z**2).sum(axis=1), np.argsort(z, axis=-1)[:, ::-1]

    x, y = np.random.default_rng(0).normal(size=(2, 7, 5))
    found = [function(x, y), function(x[:4], y)]
    return [torch.from_numpy(np.ascontiguousarray(each)) for pair in found for each in pair], lambda: function(x, y)


@script("broken-graphs")
def broken_graphs(run):
    """Prints, values read in Python, a part that is not compiled, exceptions that are caught, generators."""
    net = perceptron(run, 8, 16, 8)

    @torch.compiler.disable
    def beside(x):
        return x.clamp(-1, 1) * float(x.abs().max() > 2)

    @run.compile
    def function(x, history):
        y = net(x)
        with contextlib.redirect_stdout(io.StringIO()):
            print("norm", y.norm().item())
        y = y + beside(y)
        if y.mean().item() > 0:
            y = y.relu()
        try:
            y = y @ torch.ones(3, 3, dtype=y.dtype)
        except RuntimeError:
            y = sum(row * i for i, row in enumerate(y.unbind(0)))
        history.append(y.detach().sum())
        return y * len(history)

    history, found = [], []
    for n in (4, 4, 6):
        found.append(function(run.normal(n, 8), history))
    sum(y.square().sum() for y in found).backward()
    return [*(y.detach() for y in found), *history, *(p.grad for p in net.parameters())], None


@script("profiled")
def profiled(run):
    """Under a profiler, a device context, anomaly detection, inference mode, deterministic algorithms; copies and saved states."""
    net = perceptron(run, 8, 16, 8)
    forward = run.compile(net)
    x, found = run.normal(5, 8), []
    with torch.profiler.profile() as told:
        found.append(forward(x))
    with torch.autograd.set_detect_anomaly(True):
        forward(x).sum().backward()
    torch.use_deterministic_algorithms(True)
    with torch.device("cpu"), torch.inference_mode():
        found.append(forward(x))
    torch.use_deterministic_algorithms(False)
    with torch.compiler.set_stance("force_eager"):
        found.append(forward(x))
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    net.load_state_dict({k: v * 2 for k, v in torch.load(file).items()})
    with torch.no_grad():
        found.append(forward(x))
        net[0].weight.data.mul_(0.5)
        net[0].weight.data = net[0].weight.data.clone()
        found.append(forward(x))
    return [*(y.detach().clone() for y in found), torch.tensor(len(told.events()) > 0)], None


@script("sparse-products")
def sparse_products(run):
    dense = run.normal(12, 10) * (torch.rand(12, 10) > 0.7)
    csr, coo = dense.to_sparse_csr(), dense.to_sparse()

    @run.compile
    def function(x):
        y = (x * 2).relu()
        return torch.sparse.mm(coo, y).exp(), (csr @ y).sum(0)

    with torch.no_grad():
        return list(function(run.normal(10, 6))), None


@script("packed-sequences")
def packed_sequences(run):
    net = run(nn.LSTM(8, 12, batch_first=True, bidirectional=True))

    def function(x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, (h, _) = net(packed)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return y.sum(1), h

    return with_gradients(run, function, run.normal(3, 6, 8), torch.tensor([6, 2, 4]), module=net)


@script("losses")
def losses(run):
    def function(x, y, z):
        target, sign = y.argmax(-1), (y[:, 0] > 0).to(x.dtype) * 2 - 1
        found = [F.multi_margin_loss(x, target), F.multilabel_soft_margin_loss(x, y.sigmoid().round()), F.triplet_margin_loss(x, y, z, swap=True)]
        found += [F.cosine_embedding_loss(x, y, sign), F.margin_ranking_loss(x[:, 0], y[:, 0], sign), F.hinge_embedding_loss(x[:, 0], sign), F.soft_margin_loss(x[:, 0], sign)]
        found += [F.poisson_nll_loss(x, y.abs(), full=True), F.gaussian_nll_loss(x, y, F.softplus(z)), F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean")]
        found += [F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=z[0].detach().exp()), F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), z.detach().sigmoid()), F.l1_loss(x, y)]
        found += [F.multilabel_margin_loss(x, y.argsort(-1).where(y > -0.5, -1)), F.cross_entropy(x, y.softmax(-1), label_smoothing=0.1, weight=z[0].detach().exp())]
        lines = x.log_softmax(-1)[:, None].expand(12, 3, 6)
        return [*found, F.ctc_loss(lines, torch.tensor([[1, 2, 2], [3, 3, 1], [5, 4, 0]]), torch.tensor([12, 12, 9]), torch.tensor([3, 3, 2]))]

    return with_gradients(run, function, *(run.normal(12, 6) for _ in range(3)))
