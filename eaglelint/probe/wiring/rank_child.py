"""One rank of a run under torchrun: joins the others by gloo, gives up its rights, runs the class, tells rank 0.

Started by ``child.py`` as ``python -I -m torch.distributed.run … rank_child.py ROOT LIMITS TASK``. Rank 0 writes the
answer of all ranks to standard output, as JSON; ranks hand each other JSON too, as tensors of bytes.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Run the task on this rank."""
    sys.path.insert(0, sys.argv[1])
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    from eaglelint.probe.wiring.contain import Limits, restrict
    from eaglelint.probe.wiring.observe import observe
    from eaglelint.probe.wiring.ranks import Ranks
    from eaglelint.probe.wiring.task import Task

    limits = Limits(**json.loads(sys.argv[2]))
    task = Task.from_json(json.loads(sys.argv[3]))
    dist.init_process_group("gloo")
    ranks = Ranks(dist.get_rank(), dist.get_world_size())
    # Every exchange that a run makes is made once before: what gloo opens for it is open then.
    for exchange in ("all_reduce", "all_gather"):
        ranks.exchange(exchange, [torch.ones(2, 2)], (), {})
    try:
        enforced = restrict(limits, joined=True)
    except OSError as error:
        document: dict[str, Any] = {"error": f"nothing was run: {error.strerror or error}", "enforced": []}
    else:
        document = {"observation": observe(task, ranks).to_json(), "enforced": enforced}
    documents = [document]
    for rank in range(1, ranks.size):
        if ranks.rank == rank:
            data = torch.frombuffer(bytearray(json.dumps(document).encode()), dtype=torch.uint8)
            dist.send(torch.tensor([len(data)]), 0)
            dist.send(data, 0)
        elif ranks.rank == 0:
            length = torch.zeros(1, dtype=torch.int64)
            dist.recv(length, rank)
            data = torch.zeros(max(0, min(int(length), limits.answer)), dtype=torch.uint8)
            dist.recv(data, rank)
            documents.append(json.loads(bytes(data.tolist())))
    if ranks.rank == 0:
        written = json.dumps({"ranks": documents}).encode()
        while written:
            written = written[os.write(answers, written) :]
    os._exit(0)


if __name__ == "__main__":
    main()
