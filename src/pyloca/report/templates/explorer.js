// Drag a point and see how the model maps it.
const FAR = 3; // times the usual spacing between embedded bursts at which a point is outside the data
const FADED = 0.45; // strength with which that is drawn
const NEAR = 8; // pixels from a dot at which the mouse is on it
const SHORT = 6; // numbers that fit into a line of text

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
    this.strength = 1; // of what the model says, when drawn
    this.views = [];
    this.lines = {};
    this.colouring = null; // of the dots; null: all alike
    this.chosen = "";
  }

  name(i) {
    const label = this.data.labels && this.data.labels[i];
    const id = this.data.ids ? this.data.ids[i] : this.data.rows[i];
    return `burst ${id}${label ? ` (${label})` : ""}`;
  }

  /** The burst whose dot, one of `places` on the screen, is under the mouse. */
  tip(places, at) {
    const [i, away] = nearest(places, at);
    if (away > NEAR) return "";
    return this.colouring ? `${this.name(i)}, ${this.colouring.words(i)}` : this.name(i);
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

  /** The plane that is dragged on, drawn by `drawPlane`. */
  addPlane(title, ratio) {
    this.plane = new View(this.area, title, ratio, (context, width, height) => this.drawPlane(context, width, height));
    const { canvas } = this.plane;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", `${title}. Arrow keys move the point, with Shift ten times as far.`);
    canvas.setAttribute("aria-describedby", `${this.root.id}-hint`);
    this.views.push(this.plane);
  }

  /** Words for the dots, the point and the ring, and a line of text for each of `lines`. */
  addReadout(lines, [dots, point, ring]) {
    const { total, image_shape } = this.data;
    const shown = this.points.length < total ? `${this.points.length} of ${total} ${dots}` : dots;
    const legend = [["", shown], ["point", point], ["ring", ring]];
    if (this.names.length > 3 && !image_shape) legend.push(["band", "range of the data"]);
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

  /** When the colours of the page changed. */
  recolour() {
    if (this.showLegend) this.showLegend();
    this.redraw();
  }

  resize() {
    for (const view of this.views) view.resize();
    this.redraw();
  }

  measured() {
    if (this.y.length <= SHORT) {
      if (!this.data.names) return vector(this.y);
      return this.names.map((name, i) => `${name} ${number(this.y[i])}`).join(", ");
    }
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
      "The decoder runs in this page and shows what would be measured there.";
    if (d > 2) this.addControls();
    addColourMenu(this.stage, this, () => this.redraw());
    this.addViews();
    this.backdrop = new Backdrop();
    const ratio = d === 1 ? 0.5 : d === 2 ? fitting(this.box(), 1) : 1;
    this.addPlane("Embedding", ratio);
    addTip(this.plane, (at) => this.tip(this.points.map((z) => this.frame.toScreen(this.shown(z))), at));
    this.addMeasurement(ratio);
    this.addReadout(
      [["z", "point z"], ["y", "decoded measurement"], ["back", "round trip"], ["trust", "trust"]],
      ["bursts", "the point, and its measurement", "encoder of that measurement"],
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
      slider.addEventListener("input", () => {
        this.set(this.z.map((old, i) => (i === axis ? Number(slider.value) : old)));
      });
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
    const off = distance(this.z, this.back);
    const outside = away > FAR * this.data.spacing;
    const lost = off > FAR * this.data.spacing;
    this.strength = outside || lost ? FADED : 1;
    this.lines.trust.classList.toggle("outside", outside || lost);
    const times = number(Number((away / this.data.spacing).toPrecision(2)));
    const far = `${this.unit(number(away))} away (${times} × their usual spacing)`;
    const next = away === 0 ? `this is ${this.name(burst)}` : `nearest is ${this.name(burst)}, ${far}`;
    this.say({
      z: this.unit(vector(this.z)),
      y: this.measured(),
      back: `encoder of it: ${vector(this.back)}, ${this.unit(number(off))} off`,
      trust: outside
        ? `outside the data: ${next}. Nothing was measured here.`
        : lost
          ? `inside the data, but the encoder takes this measurement elsewhere: do not believe it; ${next}`
          : `inside the data: ${next}`,
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
    const paint = this.colouring && this.colouring.paint;
    this.backdrop.paint(context, this.plane, `${this.axes} ${this.chosen}`, (behind) =>
      drawDots(behind, this.points, (z) => this.frame.toScreen(this.shown(z)), paint),
    );
    ring(context, this.frame.toScreen(this.shown(this.back)));
    context.globalAlpha = this.strength;
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
      "Drag the orange point, or focus the plan and use the arrow keys (with Shift: ten times as far). It jumps to " +
      "the nearest place where something was measured; the encoder sees that measurement alone and says where it is.";
    this.addViews();
    this.backdrop = new Backdrop();
    const ratio = fitting(this.box, 1.3);
    this.addPlane("True places", ratio);
    addTip(this.plane, (at) => this.tip(this.places.map((p) => this.frame.toScreen(p)), at));
    this.addMeasurement(ratio);
    this.addReadout(
      [["place", "true place"], ["found", "place by the encoder"], ["error", "error"], ["y", "measurement"]],
      ["measured places", "the true place", "the encoder's place, turned and shifted onto the plan"],
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
  window.matchMedia(query).addEventListener("change", () => explorers.forEach((explorer) => explorer.recolour()));
}
