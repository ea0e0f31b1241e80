"""Tables as the profilers write them, after their documentation; those of a GPU come from the tests marked `gpu`."""

from kernel_scientist.records.evaluation import Evaluation, Timing
from kernel_scientist.records.kernel import Verdict

TORCH = """
import pathlib

def custom_kernel(data):
    x, out = data
    with pathlib.Path("calls").open("a") as file:
        file.write(f"{x.numel()} ")
    return out.copy_(x)
"""
"""A kernel that writes down its calls."""
HEADER = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id",'
    '"Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",'
    '"Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"'
)
SPIN = "at::cuda::(anonymous namespace)::spin_kernel(long)"


def rocprof_table(dispatches: list[tuple[str, dict[str, float]]]) -> str:
    """A table as rocprofv3 writes it: a row per dispatch and counter."""
    lines = [HEADER]
    for number, (kernel, counts) in enumerate(dispatches, start=1):
        for counter, value in counts.items():
            place = f'{number},{number},"Agent 4",1,900,900,65536,{number % 3}'
            rest = f'256,0,0,32,4,48,"{counter}",{value:.6f},{1000 + number},{2000 + number}'
            lines.append(f'{place},"{kernel}",{rest}')
    return "\n".join(lines) + "\n"


def ncu_table(dispatches: list[tuple[str, dict[str, str]]], units: dict[str, str]) -> str:
    """A table of ncu's page `raw`: names, units, a row per kernel; its own words around it."""
    names = list(units)
    first = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Device", "CC"]
    rows = [first + names, [""] * 9 + list(units.values())]
    for number, (kernel, counts) in enumerate(dispatches):
        rows.append([str(number), "77", "python3.11", "127.0.0.1", kernel, "1", "7", "0", "9.0"])
        rows[-1] += [counts.get(name, "n/a") for name in names]
    table = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    return f"==PROF== Connected to process 77 (/usr/bin/python3.11)\n{table}\n==PROF== Disconnected from process 77\n"


def evaluation(**changes: object) -> Evaluation:
    """An evaluation of a kernel that was timed."""
    timing = Timing(case="large", time_us=5.0, interval_us=(4.9, 5.1))
    return Evaluation(verdict=Verdict.OK, timings=(timing,)).model_copy(update=changes)
