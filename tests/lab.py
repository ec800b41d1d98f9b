"""Tables of a lab, those of the tutorial test and of docs/bursts.md: runs of an instrument, a row per measurement."""

import csv

import numpy as np

SENSORS = ["strain_mV", "pressure_Pa", "temperature_K", "current_A", "gap_m", "humidity"]
HEADER = ["run_id", "t", "operator", *SENSORS, "gain"]
TREMOR = 0.02  # of u and v, which run from -1 to 1


def instrument(latent):
    """What six sensors show in the states (n, 2): spreads from 1e-3 (A, m) to 1e4 (Pa)."""
    u, v = latent.T
    return np.stack(
        [
            120 * np.exp(0.6 * u) + 15 * v,
            101_325 + 2e4 * np.sin(1.2 * u + 0.8 * v),
            300 + 4 * v + 2 * u * v,
            0.002 * (1 + u**2 + 0.5 * v),
            0.005 * np.cos(1.1 * v - 0.4 * u),
            40 * np.tanh(u - v),
        ],
        axis=1,
    )


def write_runs(path, names, latents, counts, random, *, tremor=TREMOR, noise=None, shifts=None, gaps=()):
    """One row per measurement. Returns the latent state of each row, which the user never sees.

    `noise`: a standard deviation per sensor. `shifts`: what is added to the readings of a run, by its name. `gaps`:
    (row, sensor) of empty cells.
    """
    clock, states, row = 0.0, [], 0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for name, latent, count in zip(names, latents, counts, strict=True):
            states.append(latent + tremor * random.standard_normal((count, 2)))
            operator = random.choice(["Ada", "Grace", "Emmy"])
            readings = instrument(states[-1])
            if noise is not None:
                readings += noise * random.standard_normal(readings.shape)
            for cells in (readings + (shifts or {}).get(name, 0)).tolist():
                clock += 0.25
                empty = {sensor for at, sensor in gaps if at == row}
                cells = ["" if sensor in empty else cell for sensor, cell in zip(SENSORS, cells, strict=True)]
                writer.writerow([name, clock, operator, *cells, 2.0])
                row += 1
    return np.concatenate(states)


def write_lab(folder):
    """runs.csv of 300 runs and new.csv of 20 more; the truth about both."""
    random = np.random.RandomState(0)
    truth = random.uniform(-1, 1, size=(300, 2))
    write_runs(folder / "runs.csv", [f"run-{i:03d}" for i in range(300)], truth, random.randint(5, 41, 300), random)
    later = random.uniform(-0.9, 0.9, size=(20, 2))
    new = write_runs(folder / "new.csv", [f"new-{i:02d}" for i in range(20)], later, random.randint(5, 41, 20), random)
    return truth, new


def write_dirty_lab(folder):
    """noisy.csv: noise in two sensors, one run apart; still.csv: the noise alone; gaps.csv: five empty cells."""
    random = np.random.RandomState(1)
    names, truth = [f"run-{i:03d}" for i in range(300)], random.uniform(-1, 1, size=(300, 2))
    counts, noise = random.randint(20, 41, 300), np.array([1.5, 0, 0.05, 0, 0, 0])
    apart = {"run-017": np.array([0, 0, 60.0, 0, 0, 0])}
    write_runs(folder / "noisy.csv", names, truth, counts, random, noise=noise, shifts=apart)
    still = [f"still-{i:02d}" for i in range(10)]
    write_runs(folder / "still.csv", still, truth[:10], [60] * 10, random, tremor=0, noise=noise)
    gaps = [(7, "pressure_Pa"), (8, "pressure_Pa"), (38, "pressure_Pa"), (3000, "pressure_Pa"), (48, "temperature_K")]
    write_runs(folder / "gaps.csv", names, truth, counts, random, gaps=gaps)
