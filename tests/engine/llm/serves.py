"""A program that is started as `vllm` is and behaves as its environment says: a stand-in for the process, not for a
model. It has a grandchild in a session of its own, as vLLM's engine is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ARGUMENTS = sys.argv[1:]
NAME = ARGUMENTS[ARGUMENTS.index("--served-model-name") + 1]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/v1/models" and self.headers["authorization"] != f"Bearer {os.environ['VLLM_API_KEY']}":
            return self.answer(401, {})
        self.answer(200, {"data": [{"id": NAME}]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body["messages"][0]["content"] == "die":
            os._exit(9)
        choice = {"index": 0, "message": {"role": "assistant", "content": str(os.getpid())}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self.answer(
            200,
            {"id": "1", "object": "chat.completion", "created": 0, "model": NAME, "choices": [choice], "usage": usage},
        )

    def answer(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    if said := os.environ.get("FAIL_WITH"):
        time.sleep(float(os.environ.get("FAIL_AFTER_S", "0")))
        print(said, file=sys.stderr)
        sys.exit(3)
    hears = "" if os.environ.get("DEAF") else "signal.signal(15, signal.SIG_DFL); "
    text = f"import signal, time; signal.signal(15, signal.SIG_IGN); {hears}time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", text], start_new_session=True)
    with Path(os.environ["PIDS"]).open("a") as file:
        file.write(f"{os.getpid()} {child.pid}\n")
    print("INFO 12-01 05:00:00 [model.py:10] Loading weights 50%", flush=True)
    ThreadingHTTPServer(("127.0.0.1", int(ARGUMENTS[ARGUMENTS.index("--port") + 1])), Handler).serve_forever()


if __name__ == "__main__":
    main()
