// What a measurement looks like: a point in a cloud, bars or a line, a picture.
const BARS = 64; // features that are drawn as bars and listed as numbers; more make a line

/** D = 2 and 3: the measurement among the measured ones; in three dimensions the cloud turns. */
function makeScatter(parent, data, explorer, update) {
  // Features of different kinds have no common scale: each is drawn over its own range, from 0 to 1.
  const [lowest, highest] = [unpack(data.low), unpack(data.high)];
  const inRange = (y) => Array.from(y, (value, i) => (value - lowest[i]) / (highest[i] - lowest[i] || 1));
  const scaled = data.mixed ? inRange : (y) => y;
  const means = unpackRows(data.means).map(scaled);
  const three = means[0].length === 3;
  const [low, high] = [scaled(lowest), scaled(highest)];
  const middle = Array.from(low, (value, i) => (value + high[i]) / 2);
  const radius = Math.hypot(...Array.from(low, (value, i) => (high[i] - value) / 2));
  let [turn, tilt] = [0.6, 0.5];
  const flat = (y) => {
    if (!three) return y;
    const [a, b, c] = Array.from(y, (value, i) => value - middle[i]);
    const across = Math.cos(turn) * a - Math.sin(turn) * b;
    const along = Math.sin(turn) * a + Math.cos(turn) * b;
    return [across, Math.cos(tilt) * c + Math.sin(tilt) * along];
  };
  const box = three ? [-radius, radius, -radius, radius] : [low[0], high[0], low[1], high[1]];
  const backdrop = new Backdrop();
  const [first, second] = explorer.names;
  const words = three ? "drag or use the arrow keys to turn" : `${first} to the right, ${second} up`;
  const names = data.mixed ? `${words}; each over its own range` : words;
  const view = new View(parent, `Measurement (${names})`, 1, (context, width, height) => {
    const plane = makePlane(box, width, height, three ? 0.02 : 0.08);
    backdrop.paint(context, view, `${turn} ${tilt}`, (behind) =>
      drawDots(behind, means, (y) => plane.toScreen(flat(y))),
    );
    context.globalAlpha = explorer.strength;
    handle(context, plane.toScreen(flat(scaled(explorer.y))));
    context.globalAlpha = 1;
    if (three) drawAxes(context, explorer.names, (i) => flat(middle.map((value, j) => value + (i === j))), height);
    if (!three && !data.mixed) drawScale(context, plane, width, height, "");
  });
  if (three) {
    const rotate = (dx, dy) => {
      turn += dx;
      tilt = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, tilt + dy));
      update();
    };
    view.canvas.classList.add("turns");
    view.canvas.tabIndex = 0;
    view.canvas.setAttribute("role", "application");
    view.canvas.setAttribute("aria-label", "The measurement among the measured means. Arrow keys turn the cloud.");
    listen(view.canvas, (_, moved) => moved && rotate(moved[0] / 120, moved[1] / 120), (dx, dy) =>
      rotate(0.1 * dx, -0.1 * dy),
    );
  }
  return view;
}

/** Where the features of a turned cloud point, in its corner. */
function drawAxes(context, names, direction, height) {
  const words = names.map(shorten);
  const [left, bottom] = [40 + widest(context, words), height - 48]; // room on either side, so that it never jumps
  context.strokeStyle = context.fillStyle = colour("soft");
  context.lineWidth = 1.5;
  context.textBaseline = "middle";
  words.forEach((name, i) => {
    const [x, y] = direction(i);
    context.beginPath();
    context.moveTo(left, bottom);
    context.lineTo(left + 26 * x, bottom - 26 * y);
    context.stroke();
    context.textAlign = x < -0.3 ? "right" : "left";
    context.fillText(name, left + 30 * x, bottom - 34 * y);
  });
}

const shorten = (name) => (name.length > 16 ? `${name.slice(0, 15)}…` : name);

/** Any D: one bar per feature, or a line through many, over the range of the data. */
function makeBars(parent, data, explorer, update, ratio) {
  const named = Boolean(data.names);
  const low = unpack(data.low);
  const high = unpack(data.high);
  // Features of different kinds have no common axis: each is drawn over its own range, from 0 to 1.
  const scaled = data.mixed ? (value, i) => (value - low[i]) / (high[i] - low[i] || 1) : (value) => value;
  const [bottom, top] = data.mixed ? [0, 1] : [Math.min(0, range(low)[0]), Math.max(0, range(high)[1])];
  const many = low.length > BARS;
  const names = explorer.names.map(shorten);
  const title = `Measurement, ${low.length} features${data.mixed ? ", each over its own range" : ""}`;
  return new View(parent, title, ratio, (context, width, height) => {
    const [left, right, above] = [46, 8, 12];
    const step = (width - left - right) / low.length;
    // A feature with a name of its own is never skipped while there is room for a line of text.
    const upright = named && !many && widest(context, names) + 6 > step;
    const below = upright ? Math.min(110, widest(context, names) + 12) : 24;
    const reach = 0.08 * (top - bottom) || 1; // a decoded value may leave the data
    const toY = (value) => {
      const part = (value - bottom + reach) / (top - bottom + 2 * reach);
      return height - below - Math.max(0, Math.min(1, part)) * (height - above - below);
    };
    context.fillStyle = colour("band");
    low.forEach((value, i) => {
      const gap = many ? 0 : 0.12 * step;
      const wide = step - 2 * gap + (many ? 0.5 : 0);
      context.fillRect(left + i * step + gap, toY(scaled(high[i], i)), wide, toY(scaled(value, i)) - toY(scaled(high[i], i)));
    });
    context.fillStyle = colour("soft");
    context.fillRect(left, toY(0), width - left - right, 1);
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of new Set([bottom, 0, top])) {
      const words = data.mixed ? (value ? "max" : "min") : number(Number(value.toPrecision(3)));
      context.fillText(words, left - 6, toY(value));
    }
    context.globalAlpha = explorer.strength;
    if (many) {
      context.beginPath();
      explorer.y.forEach((value, i) => context.lineTo(left + (i + 0.5) * step, toY(scaled(value, i))));
      context.strokeStyle = colour("point");
      context.lineWidth = 1.5;
      context.stroke();
    } else {
      context.fillStyle = colour("point");
      explorer.y.forEach((value, i) => {
        const end = toY(scaled(value, i));
        context.fillRect(left + (i + 0.3) * step, Math.min(end, toY(0)), 0.4 * step, Math.abs(end - toY(0)));
        context.fillRect(left + (i + 0.1) * step, end - 1, 0.8 * step, 2);
      });
    }
    context.globalAlpha = 1;
    context.fillStyle = colour("soft");
    drawNames(context, names, upright, (i) => left + (i + 0.5) * step, step, height - below + 6);
  });
}

/** Names under bars, upright when they are too long; of names that do not fit, every second or third and so on. */
function drawNames(context, names, upright, toX, step, top) {
  context.textAlign = upright ? "right" : "center";
  context.textBaseline = upright ? "middle" : "top";
  const needed = upright ? 13 : widest(context, names) + 6;
  const every = Math.max(1, Math.ceil(needed / step));
  for (let i = 0; i < names.length; i += every) {
    context.save();
    context.translate(toX(i), top);
    if (upright) context.rotate(-Math.PI / 2);
    context.fillText(names[i], 0, 0);
    context.restore();
  }
}

const widest = (context, names) => Math.max(...names.map((name) => context.measureText(name).width));

/** A measurement that is a picture, in grey: black is the smallest value of the data, white the largest. */
function makeImage(parent, data, explorer) {
  const [rows, columns] = data.image_shape;
  const [least, most] = [range(unpack(data.low))[0], range(unpack(data.high))[1]];
  const small = make("canvas", null, { width: columns, height: rows });
  const title = `Measurement, a picture of ${rows} × ${columns}`;
  return new View(parent, title, rows / columns, (context, width, height) => {
    const pixels = new ImageData(columns, rows);
    explorer.y.forEach((value, i) => {
      pixels.data.fill((255 * (value - least)) / (most - least || 1), 4 * i, 4 * i + 3);
      pixels.data[4 * i + 3] = 255;
    });
    small.getContext("2d").putImageData(pixels, 0, 0);
    context.imageSmoothingEnabled = false;
    context.globalAlpha = explorer.strength;
    context.drawImage(small, 0, 0, width, height);
    context.globalAlpha = 1;
  });
}
