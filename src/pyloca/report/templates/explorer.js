// Encoder and decoder in the page: drag a point, see what the model makes of it. Plain JavaScript, no library.
"use strict";
(() => {
  const FAR = 3; // times the usual spacing between embedded bursts at which a point is outside the data
  const BARS = 64; // features that are drawn as bars and listed as numbers; more make a line
  const SHORT = 6; // numbers that fit into a line of text
  const TYPES = { f4: Float32Array, f8: Float64Array };
  const ACTIVATIONS = {
    tanh: Math.tanh,
    sigmoid: (u) => 1 / (1 + Math.exp(-u)),
    softplus: (u) => (u > 20 ? u : Math.log1p(Math.exp(u))), // PyTorch's threshold
    elu: (u) => (u > 0 ? u : Math.expm1(u)),
    leaky_relu: (u) => (u > 0 ? u : 0.01 * u),
  };

  // -- the model ---------------------------------------------------------------------------------------------------

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

  /** y ↦ out_shift + out_scale · network((y − in_shift) / in_scale), as pyloca.networks has it. */
  function makeNetwork(stored) {
    const layers = stored.layers.map(makeLinear);
    const last = layers.pop();
    const tail = stored.tail && makeLinear(stored.tail);
    const skip = stored.skip && makeLinear(stored.skip);
    const phi = ACTIVATIONS[stored.activation];
    const inShift = unpack(stored.in_shift);
    const outShift = unpack(stored.out_shift);
    return (y) => {
      const x = Array.from(y, (value, i) => (value - inShift[i]) / stored.in_scale);
      let out = last(layers.reduce((h, layer) => layer(h).map(phi), x));
      if (tail) out = tail(out);
      if (skip) {
        const straight = skip(x);
        out = out.map((value, i) => value + straight[i]);
      }
      return out.map((value, i) => outShift[i] + stored.out_scale * value);
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

  // -- words -------------------------------------------------------------------------------------------------------

  function number(value) {
    if (!Number.isFinite(value)) return String(value);
    return String(Number(value.toPrecision(6))).replace("-", "\u2212");
  }
  const vector = (values) => `(${Array.from(values, number).join(", ")})`;

  function make(tag, parent, properties = {}, attributes = {}) {
    const element = Object.assign(document.createElement(tag), properties);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (parent) parent.append(element);
    return element;
  }

  // -- drawing -----------------------------------------------------------------------------------------------------

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  /** A canvas that is sharp on every screen, with `draw(context, width, height)` called when it must be drawn again. */
  class View {
    constructor(parent, title, ratio, draw) {
      const figure = make("figure", parent, { className: "view" });
      this.title = make("figcaption", figure, { textContent: title });
      this.canvas = make("canvas", figure, {}, { role: "img", "aria-label": title });
      this.draw = draw;
      this.ratio = ratio; // height over width
    }

    resize() {
      const width = this.canvas.parentElement.clientWidth;
      this.width = width - 2; // the border
      this.height = Math.round(this.width * this.ratio);
      const dense = window.devicePixelRatio || 1;
      this.canvas.width = Math.round(this.width * dense);
      this.canvas.height = Math.round(this.height * dense);
      this.canvas.style.height = `${this.height + 2}px`;
      this.dense = dense;
    }

    redraw() {
      if (!this.width) this.resize();
      const context = this.canvas.getContext("2d");
      context.setTransform(this.dense, 0, 0, this.dense, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      context.font = "12px system-ui, sans-serif";
      this.draw(context, this.width, this.height);
    }
  }

  function dot(context, [x, y], radius, fill) {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = fill;
    context.fill();
  }

  /** The point that is dragged: filled, with an edge that stands out on dots of any colour. */
  function handle(context, at, radius = 7) {
    dot(context, at, radius + 2, colour("paper"));
    dot(context, at, radius, colour("point"));
  }

  function ring(context, [x, y], radius = 10) {
    for (const [stroke, width] of [["paper", 5], ["ring", 2.5]]) {
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.strokeStyle = colour(stroke);
      context.lineWidth = width;
      context.stroke();
    }
  }

  const FOOT = 26; // pixels for the scale below

  /** Equal scales on both axes, so that a distance on the screen is a distance; the box (x0, x1, y0, y1) fits in. */
  function makePlane(box, width, fullHeight, margin) {
    const height = fullHeight - FOOT;
    // A side of length 0 (one coordinate alone, or a single point) asks for no room.
    const fit = Math.min(width / (box[1] - box[0]), height / (box[3] - box[2]));
    const scale = (1 - 2 * margin) * (Number.isFinite(fit) ? fit : 1);
    const middle = [(box[0] + box[1]) / 2, (box[2] + box[3]) / 2];
    return {
      scale,
      toScreen: ([x, y]) => [width / 2 + scale * (x - middle[0]), height / 2 - scale * (y - middle[1])],
      fromScreen: ([x, y]) => [middle[0] + (x - width / 2) / scale, middle[1] - (y - height / 2) / scale],
    };
  }

  /** A bar 1, 2 or 5 times a power of ten long, which says how long it is. */
  function drawScale(context, plane, width, height, unit) {
    const longest = (0.3 * width) / plane.scale;
    const power = 10 ** Math.floor(Math.log10(longest));
    const length = [5, 2, 1].map((digit) => digit * power).find((value) => value <= longest);
    const x = width - 12 - length * plane.scale;
    context.fillStyle = colour("soft");
    context.fillRect(x, height - 12, length * plane.scale, 2);
    context.textAlign = "right";
    context.textBaseline = "bottom";
    context.fillText(`${number(length)}${unit ? ` ${unit}` : ""}`, width - 12, height - 15);
  }

  /** A cloud of dots is drawn once and kept: dragging then costs the same for 30 dots and for 3000. */
  class Backdrop {
    constructor() {
      this.key = "";
    }

    paint(context, view, key, draw) {
      const now = `${key} ${view.canvas.width} ${colour("dots")}`;
      if (now !== this.key) {
        this.key = now;
        this.picture = make("canvas", null, { width: view.canvas.width, height: view.canvas.height });
        const behind = this.picture.getContext("2d");
        behind.setTransform(view.dense, 0, 0, view.dense, 0, 0);
        draw(behind);
      }
      context.drawImage(this.picture, 0, 0, view.width, view.height);
    }
  }

  function drawDots(context, points, toScreen) {
    context.globalAlpha = points.length > 1000 ? 0.45 : 0.75;
    for (const point of points) dot(context, toScreen(point), points.length > 1000 ? 1.6 : 2.2, colour("dots"));
    context.globalAlpha = 1;
  }

  // -- views of a measurement --------------------------------------------------------------------------------------

  /** D = 2 and 3: the measurement among the measured ones; in three dimensions the cloud turns. */
  function makeScatter(parent, data, explorer, update) {
    const means = unpackRows(data.means);
    const three = means[0].length === 3;
    const low = unpack(data.low);
    const high = unpack(data.high);
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
    const names = three ? "drag or use the arrow keys to turn" : `${explorer.names[0]} to the right, ${explorer.names[1]} up`;
    const view = new View(parent, `Measurement (${names})`, 1, (context, width, height) => {
      const plane = makePlane(box, width, height, three ? 0.02 : 0.08);
      backdrop.paint(context, view, `${turn} ${tilt}`, (behind) =>
        drawDots(behind, means, (y) => plane.toScreen(flat(y))),
      );
      handle(context, plane.toScreen(flat(explorer.y)));
      if (!three) drawScale(context, plane, width, height, "");
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

  /** Any D: a bar a feature, or a line of many, over the range of the data. */
  function makeBars(parent, data, explorer, update, ratio) {
    const named = Boolean(data.names);
    const low = unpack(data.low);
    const high = unpack(data.high);
    const [bottom, top] = [Math.min(0, range(low)[0]), Math.max(0, range(high)[1])];
    const many = low.length > BARS;
    const names = explorer.names.map((name) => (name.length > 16 ? `${name.slice(0, 15)}…` : name));
    return new View(parent, `Measurement, ${low.length} features`, ratio, (context, width, height) => {
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
        context.fillRect(left + i * step + gap, toY(high[i]), step - 2 * gap + (many ? 0.5 : 0), toY(value) - toY(high[i]));
      });
      context.fillStyle = colour("soft");
      context.fillRect(left, toY(0), width - left - right, 1);
      context.textAlign = "right";
      context.textBaseline = "middle";
      for (const value of new Set([bottom, 0, top])) context.fillText(number(Number(value.toPrecision(3))), left - 6, toY(value));
      if (many) {
        context.beginPath();
        explorer.y.forEach((value, i) => context.lineTo(left + (i + 0.5) * step, toY(value)));
        context.strokeStyle = colour("point");
        context.lineWidth = 1.5;
        context.stroke();
      } else {
        context.fillStyle = colour("point");
        explorer.y.forEach((value, i) => {
          const end = toY(value);
          context.fillRect(left + (i + 0.3) * step, Math.min(end, toY(0)), 0.4 * step, Math.abs(end - toY(0)));
          context.fillRect(left + (i + 0.1) * step, end - 1, 0.8 * step, 2);
        });
      }
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

  /** A measurement that is a picture, in grey: black is the least value of the data and white the greatest. */
  function makeImage(parent, data, explorer) {
    const [rows, columns] = data.image_shape;
    const [least, most] = [range(unpack(data.low))[0], range(unpack(data.high))[1]];
    const small = make("canvas", null, { width: columns, height: rows });
    return new View(parent, `Measurement, a picture of ${rows} × ${columns}`, rows / columns, (context, width, height) => {
      const pixels = new ImageData(columns, rows);
      explorer.y.forEach((value, i) => {
        pixels.data.fill((255 * (value - least)) / (most - least || 1), 4 * i, 4 * i + 3);
        pixels.data[4 * i + 3] = 255;
      });
      small.getContext("2d").putImageData(pixels, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(small, 0, 0, width, height);
    });
  }

  // -- pointer and keys --------------------------------------------------------------------------------------------

  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  /** `drag(at, moved)` in pixels while the pointer is down (`moved` is null at first); `step(dx, dy)` for arrow keys. */
  function listen(canvas, drag, step) {
    let last = null;
    const place = (event) => {
      const frame = canvas.getBoundingClientRect();
      return [event.clientX - frame.left - 1, event.clientY - frame.top - 1];
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      canvas.focus({ preventScroll: true });
      last = place(event);
      drag(last, null);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      const now = place(event);
      drag(now, [now[0] - last[0], now[1] - last[1]]);
      last = now;
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (last = null));
    canvas.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      if (!arrow || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const size = event.shiftKey ? 10 : 1;
      step(size * arrow[0], size * arrow[1]);
    });
  }

  // -- explorers ---------------------------------------------------------------------------------------------------

  /** What both kinds have: views, a readout, and numbers for those who listen. */
  class Explorer {
    constructor(root, data) {
      this.root = root;
      this.data = data;
      this.encode = makeNetwork(data.encoder);
      this.decode = makeNetwork(data.decoder);
      this.points = unpackRows(data.points);
      this.names = data.names || Array.from({ length: data.low.shape[0] }, (_, i) => `y${i}`);
      this.stage = root.querySelector(".stage");
      this.views = [];
      this.lines = {};
    }

    name(i) {
      const label = this.data.labels && this.data.labels[i];
      return `burst ${this.data.rows[i]}${label ? ` (${label})` : ""}`;
    }

    unit(text) {
      return this.data.unit ? `${text} ${this.data.unit}` : text;
    }

    addViews() {
      this.area = make("div", this.stage, { className: "views" });
    }

    addMeasurement(ratio) {
      const { data } = this;
      const cloud = this.names.length === 2 || this.names.length === 3;
      const maker = data.image_shape ? makeImage : cloud ? makeScatter : makeBars;
      this.views.push(maker(this.area, data, this, () => this.redraw(), ratio));
    }

    /** The plane that is dragged on. */
    addPlane(title, ratio, label, draw) {
      const view = new View(this.area, title, ratio, draw);
      view.canvas.tabIndex = 0;
      view.canvas.setAttribute("role", "application");
      view.canvas.setAttribute("aria-label", label);
      view.canvas.setAttribute("aria-describedby", `${this.root.id}-hint`);
      this.views.push(view);
      return view;
    }

    addReadout(lines, legend) {
      const list = make("ul", this.stage, { className: "legend" });
      for (const [className, textContent] of legend) make("li", list, { className, textContent });
      const readout = make("dl", this.stage, { className: "readout" });
      for (const [key, title] of lines) {
        make("dt", readout, { textContent: title });
        this.lines[key] = make("dd", readout, {}, { "data-line": key });
      }
      if (this.names.length > SHORT && this.names.length <= BARS) {
        const details = make("details", this.stage);
        make("summary", details, { textContent: `All ${this.names.length} numbers of the measurement` });
        const numbers = make("ul", details, { className: "numbers" });
        this.numbers = this.names.map((textContent) => {
          const item = make("li", numbers);
          make("span", item, { textContent });
          return make("span", item);
        });
      }
      this.live = make("p", this.stage, { className: "quiet" }, { "aria-live": "polite" });
    }

    say(words) {
      for (const [key, text] of Object.entries(words)) this.lines[key].textContent = text;
      if (this.numbers) this.y.forEach((value, i) => (this.numbers[i].textContent = number(value)));
      // Those who listen hear where a movement ended, not every pixel of it.
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.live.textContent = Object.values(words).join(". ");
      }, 500);
    }

    redraw() {
      for (const view of this.views) view.redraw();
    }

    resize() {
      for (const view of this.views) view.resize();
      this.redraw();
    }

    measured() {
      if (this.y.length <= SHORT) return vector(this.y);
      const [low, high] = range(this.y);
      return `${this.y.length} numbers from ${number(low)} to ${number(high)}`;
    }
  }

  /** Drag in the embedding, see the decoded measurement. */
  class MeasurementExplorer extends Explorer {
    constructor(root, data) {
      super(root, data);
      const d = this.points[0].length;
      this.ranges = Array.from({ length: d }, (_, axis) => range(this.points.map((point) => point[axis])));
      const centre = this.ranges.map((_, axis) => {
        const sorted = this.points.map((point) => point[axis]).sort((a, b) => a - b);
        return sorted[sorted.length >> 1];
      });
      this.z = Array.from(this.points[nearest(this.points, centre)[0]]); // a burst in the middle
      this.axes = d > 1 ? [0, 1] : [0];
      root.querySelector(".hint").textContent =
        "Drag the orange point, or focus the embedding and use the arrow keys (with Shift: ten times as far). " +
        "The decoder runs in this page and says what would be measured there.";
      if (d > 2) this.addControls();
      this.addViews();
      this.backdrop = new Backdrop();
      this.plane = this.addPlane("", d > 1 ? 1 : 0.4, "Embedding. Arrow keys move the point, with Shift ten times as far.", (c, w, h) =>
        this.drawPlane(c, w, h),
      );
      this.addMeasurement(d > 1 ? 1 : 0.6);
      const dots = this.points.length < data.total ? `${this.points.length} of ${data.total} bursts` : "bursts";
      const legend = [["", dots], ["point", "the point, and its measurement"], ["ring", "encoder of that measurement"]];
      if (this.names.length > 3 && !data.image_shape) legend.push(["band", "range of the data"]);
      this.addReadout(
        [["z", "point z"], ["y", "decoded measurement"], ["back", "round trip"], ["trust", "trust"]],
        legend,
      );
      listen(
        this.plane.canvas,
        (at) => this.moveTo(this.frame.fromScreen(at)),
        (dx, dy) => {
          const size = 0.01 * Math.max(...this.axes.map((axis) => this.ranges[axis][1] - this.ranges[axis][0]));
          const [x, y] = this.shown(this.z);
          this.moveTo([x + size * dx, y + size * dy]);
        },
      );
      this.set(this.z);
    }

    shown(z) {
      return [z[this.axes[0]], this.axes.length > 1 ? z[this.axes[1]] : 0];
    }

    box() {
      const [x0, x1] = this.ranges[this.axes[0]];
      const [y0, y1] = this.axes.length > 1 ? this.ranges[this.axes[1]] : [0, 0];
      return [x0, x1, y0, y1];
    }

    addControls() {
      const controls = make("div", this.stage, { className: "controls" });
      this.pickers = ["across", "up"].map((word, place) => {
        const picker = make("select", make("label", controls, { textContent: word }));
        this.ranges.forEach((_, axis) => make("option", picker, { value: axis, textContent: `z${axis}` }));
        picker.value = place;
        picker.addEventListener("change", () => {
          const chosen = Number(picker.value);
          if (this.axes[1 - place] === chosen) this.axes[1 - place] = this.axes[place]; // they change places
          this.axes[place] = chosen;
          this.pickers.forEach((other, i) => (other.value = this.axes[i]));
          this.arrange();
          this.set(this.z);
        });
        return picker;
      });
      this.sliders = this.ranges.map(([min, max], axis) => {
        const label = make("label", controls, { textContent: `z${axis}` });
        const slider = make("input", label, { type: "range", min, max, step: (max - min) / 200, value: this.z[axis] });
        slider.addEventListener("input", () => this.set(this.z.map((old, i) => (i === axis ? Number(slider.value) : old))));
        return slider;
      });
      this.arrange();
    }

    /** A slider for every coordinate that is not dragged. */
    arrange() {
      this.sliders.forEach((slider, axis) => {
        slider.parentElement.hidden = this.axes.includes(axis);
        slider.value = this.z[axis];
      });
    }

    moveTo([x, y]) {
      const [x0, x1, y0, y1] = this.frameBox;
      const z = this.z.slice();
      z[this.axes[0]] = Math.max(x0, Math.min(x1, x));
      if (this.axes.length > 1) z[this.axes[1]] = Math.max(y0, Math.min(y1, y));
      this.set(z);
    }

    set(z) {
      this.z = Array.from(z);
      this.y = this.decode(this.z);
      this.back = this.encode(this.y);
      const [burst, away] = nearest(this.points, this.z);
      this.outside = away > FAR * this.data.spacing;
      this.lines.trust.classList.toggle("outside", this.outside);
      const times = this.data.spacing > 0 ? ` (${number(Number((away / this.data.spacing).toPrecision(2)))} × their usual spacing)` : "";
      const next = away === 0 ? `this is ${this.name(burst)}` : `nearest is ${this.name(burst)}, ${this.unit(number(away))} away${times}`;
      this.say({
        z: this.unit(vector(this.z)),
        y: this.measured(),
        back: `encoder of it: ${vector(this.back)}, ${this.unit(number(distance(this.z, this.back)))} off`,
        trust: this.outside ? `outside the data: ${next}. Nothing was measured here.` : `inside the data: ${next}`,
      });
      this.redraw();
    }

    drawPlane(context, width, height) {
      this.frame = makePlane(this.box(), width, height, 0.1);
      const [x0, y0] = this.frame.fromScreen([6, height - 6]);
      const [x1, y1] = this.frame.fromScreen([width - 6, 6]);
      this.frameBox = [x0, x1, y0, y1];
      this.plane.title.textContent =
        this.axes.length > 1 ? `Embedding (z${this.axes[0]} to the right, z${this.axes[1]} up)` : "Embedding";
      this.backdrop.paint(context, this.plane, this.axes.join(), (behind) =>
        drawDots(behind, this.points, (z) => this.frame.toScreen(this.shown(z))),
      );
      ring(context, this.frame.toScreen(this.shown(this.back)));
      context.globalAlpha = this.outside ? 0.45 : 1;
      handle(context, this.frame.toScreen(this.shown(this.z)));
      context.globalAlpha = 1;
      drawScale(context, this.frame, width, height, this.data.unit);
    }
  }

  /** Drag in the true plane, see the signals of the nearest measured place and where the encoder puts them. */
  class FloorExplorer extends Explorer {
    constructor(root, data) {
      super(root, data);
      this.places = unpackRows(data.places);
      this.means = unpackRows(data.means);
      const corners = data.walls.flatMap(([left, low, right, high]) => [[left, low], [right, high]]);
      const all = corners.concat(this.places);
      this.box = [...range(all.map((p) => p[0])), ...range(all.map((p) => p[1]))];
      const centre = [(this.box[0] + this.box[1]) / 2, (this.box[2] + this.box[3]) / 2];
      root.querySelector(".hint").textContent =
        "Drag the orange point, or focus the plan and use the arrow keys (with Shift: ten times as far). It jumps to the " +
        "nearest place where something was measured; the encoder sees that measurement alone and says where it is.";
      this.addViews();
      this.backdrop = new Backdrop();
      const ratio = Math.max(0.6, Math.min(1.3, (this.box[3] - this.box[2]) / (this.box[1] - this.box[0])));
      this.plane = this.addPlane("True places", ratio, "Plan. Arrow keys move the point, with Shift ten times as far.", (c, w, h) =>
        this.drawPlane(c, w, h),
      );
      const dots = this.places.length < data.total ? `${this.places.length} of ${data.total} measured places` : "measured places";
      this.addMeasurement(ratio);
      this.addReadout(
        [["place", "true place"], ["found", "place by the encoder"], ["error", "error"], ["y", "measurement"]],
        [["", dots], ["point", "the true place"], ["ring", "the encoder's place, turned and shifted onto the plan"]],
      );
      listen(
        this.plane.canvas,
        (at) => this.moveTo(this.frame.fromScreen(at)),
        (dx, dy) => {
          const size = 0.01 * Math.max(this.box[1] - this.box[0], this.box[3] - this.box[2]);
          this.moveTo([this.at[0] + size * dx, this.at[1] + size * dy]);
        },
      );
      this.moveTo(centre);
    }

    /** z ↦ scale · z · rotation + shift. */
    onPlan(z) {
      const { rotation, shift, scale } = this.data.motion;
      return shift.map((value, axis) => z.reduce((sum, part, i) => sum + scale * part * rotation[i][axis], value));
    }

    moveTo([x, y]) {
      this.at = [
        Math.max(this.box[0], Math.min(this.box[1], x)),
        Math.max(this.box[2], Math.min(this.box[3], y)),
      ];
      const [row] = nearest(this.places, this.at);
      this.place = Array.from(this.places[row]);
      this.y = Array.from(this.means[row]);
      this.found = this.onPlan(this.encode(this.y));
      const error = distance(this.place, this.found);
      this.say({
        place: `${this.unit(vector(this.place))}, ${this.name(row)}`,
        found: this.unit(vector(this.found)),
        error: this.unit(number(error)),
        y: this.measured(),
      });
      this.redraw();
    }

    drawPlane(context, width, height) {
      this.frame = makePlane(this.box, width, height, 0.04);
      this.backdrop.paint(context, this.plane, "", (behind) => {
        // Edges first and areas upon them: what remains visible is the outline of the union.
        for (const paint of ["strokeRect", "fillRect"]) {
          behind.strokeStyle = colour("soft");
          behind.lineWidth = 3;
          behind.fillStyle = colour("card");
          for (const [left, low, right, high] of this.data.walls) {
            const [x, y] = this.frame.toScreen([left, high]);
            const grow = paint === "fillRect" ? 0.5 : 0; // no seam where two rooms meet
            const [w, h] = [(right - left) * this.frame.scale, (high - low) * this.frame.scale];
            behind[paint](x - grow, y - grow, w + 2 * grow, h + 2 * grow);
          }
        }
        drawDots(behind, this.places, (p) => this.frame.toScreen(p));
      });
      const [place, found] = [this.frame.toScreen(this.place), this.frame.toScreen(this.found)];
      context.beginPath();
      context.moveTo(...place);
      context.lineTo(...found);
      context.strokeStyle = colour("ring");
      context.lineWidth = 2;
      context.stroke();
      ring(context, found);
      handle(context, place);
      drawScale(context, this.frame, width, height, this.data.unit);
    }
  }

  const KINDS = { measurement: MeasurementExplorer, floor: FloorExplorer };
  const explorers = Array.from(document.querySelectorAll(".explorer"), (root) => {
    const stored = root.querySelector('script[type="application/json"]');
    if (!stored) return null;
    const data = JSON.parse(stored.textContent);
    return new KINDS[data.kind](root, data);
  }).filter(Boolean);
  // For the console: pyloca[0].decode([0, 0]).
  window.pyloca = explorers;

  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // a phone that hides its address bar
    width = window.innerWidth;
    for (const explorer of explorers) explorer.resize();
  });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    window.matchMedia(query).addEventListener("change", () => explorers.forEach((explorer) => explorer.redraw()));
  }
})();
