"""Where a training computes, and in what precision."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from adaptiveembed.errors import SettingError
from adaptiveembed.training.settings import Autocast, DeviceChoice, TrainingSettings


@dataclass(frozen=True)
class Hardware:
    """A device, and whether models compute in bfloat16 on it."""

    device: torch.device
    bf16: bool

    @classmethod
    def of(cls, settings: TrainingSettings) -> "Hardware":
        """What the settings choose of what there is."""
        device = _device(settings.device)
        return cls(device, _bf16(settings.bf16, device))

    @property
    def is_asynchronous(self) -> bool:
        """Whether reading a number means waiting for all that was asked of the device."""
        return self.device.type != "cpu"

    def autocast(self) -> AbstractContextManager[object]:
        """Within, models compute in the precision that was chosen."""
        # a context each time: autocast forgets its cast copies of weights only when one ends, and
        # copies made without a graph would pass no gradient
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)


ANY_CPU = Hardware(torch.device("cpu"), bf16=False)
"""What every machine has."""


def _device(choice: DeviceChoice) -> torch.device:
    present = torch.cuda.is_available()
    if choice is DeviceChoice.CUDA and not present:
        raise SettingError("device is cuda and torch finds no CUDA device; set it to auto or cpu")
    if choice is DeviceChoice.CPU or not present:
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())


def _bf16(choice: Autocast, device: torch.device) -> bool:
    possible = device.type == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False)
    if choice is Autocast.ON and not possible:
        raise SettingError("bf16 is on and this device has no bfloat16; set it to auto or off")
    return choice is Autocast.ON or (choice is Autocast.AUTO and possible and device.type != "cpu")
