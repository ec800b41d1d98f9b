// Encoder and decoder in plain JavaScript: the same numbers as pyloca.networks gives.
const TYPES = { f4: Float32Array, f8: Float64Array };
const ACTIVATIONS = {
  tanh: Math.tanh,
  sigmoid: (u) => 1 / (1 + Math.exp(-u)),
  softplus: (u) => (u > 20 ? u : Math.log1p(Math.exp(u))), // PyTorch's threshold
  elu: (u) => (u > 0 ? u : Math.expm1(u)),
  leaky_relu: (u) => (u > 0 ? u : 0.01 * u),
};

function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (character) => character.charCodeAt(0));
  return new TYPES[packed.dtype](bytes.buffer);
}

/** The rows of a packed (n, m) array. */
function unpackRows(packed) {
  const [n, m] = packed.shape;
  const flat = unpack(packed);
  return Array.from({ length: n }, (_, i) => flat.subarray(i * m, (i + 1) * m));
}

function makeLinear(stored) {
  const weight = unpackRows(stored.weight);
  const bias = unpack(stored.bias);
  return (x) =>
    weight.map((row, i) => {
      let sum = bias[i];
      for (let j = 0; j < row.length; j++) sum += row[j] * x[j];
      return sum;
    });
}

/** y ↦ out_shift + out_scale · network((y − in_shift) / in_scale), as pyloca.networks has it, feature by feature. */
function makeNetwork(stored) {
  const layers = stored.layers.map(makeLinear);
  const last = layers.pop();
  const tail = stored.tail && makeLinear(stored.tail);
  const skip = stored.skip && makeLinear(stored.skip);
  const phi = ACTIVATIONS[stored.activation];
  const [inShift, inScale] = [unpack(stored.in_shift), unpack(stored.in_scale)];
  const [outShift, outScale] = [unpack(stored.out_shift), unpack(stored.out_scale)];
  return (y) => {
    const x = Array.from(y, (value, i) => (value - inShift[i]) / inScale[i]);
    let out = last(layers.reduce((h, layer) => layer(h).map(phi), x));
    if (tail) out = tail(out);
    if (skip) {
      const straight = skip(x);
      out = out.map((value, i) => value + straight[i]);
    }
    return out.map((value, i) => outShift[i] + outScale[i] * value);
  };
}

const distance = (a, b) => Math.hypot(...Array.from(a, (value, i) => value - b[i]));

/** Which of `points` is nearest, and how far it is. */
function nearest(points, point) {
  let best = 0;
  let least = Infinity;
  points.forEach((other, i) => {
    let sum = 0;
    for (let j = 0; j < point.length; j++) sum += (other[j] - point[j]) ** 2;
    if (sum < least) [best, least] = [i, sum];
  });
  return [best, Math.sqrt(least)];
}

function range(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

