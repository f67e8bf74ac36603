# control: of 15 a file in its scratch folder
# task: softmax_rows
# expect: pass
# mechanism: writes and reads a table in a temporary file of its own

import json
import tempfile

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        with tempfile.TemporaryFile("w+") as file:
            json.dump({"dim": -1}, file)
            file.seek(0)
            self.settings = json.load(file)

    def forward(self, x):
        return torch.softmax(x, dim=self.settings["dim"])
