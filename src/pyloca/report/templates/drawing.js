// What the explorers share: words and numbers, canvases, pointer and keys.

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

/** Height over width of a canvas for this box, within reason. */
const fitting = ([x0, x1, y0, y1], most) => Math.max(0.6, Math.min(most, 0.1 + (y1 - y0) / (x1 - x0))) || 1;

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

/** Dots in one colour, or each in that of `paint(i)`. */
function drawDots(context, points, toScreen, paint = null) {
  const many = points.length > 1000;
  const grey = colour("dots");
  context.globalAlpha = paint ? 1 : many ? 0.6 : 0.8;
  points.forEach((point, i) => dot(context, toScreen(point), (many ? 1.6 : 2.2) + (paint ? 0.6 : 0), paint ? paint(i) : grey));
  context.globalAlpha = 1;
}

// -- pointer and keys --------------------------------------------------------------------------------------------

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** A tooltip next to the mouse: `find([x, y])` returns its text, or "". */
function addTip(view, find) {
  const tip = make("div", view.canvas.parentElement, { className: "tip", hidden: true }, { "aria-hidden": "true" });
  view.canvas.addEventListener("pointermove", (event) => {
    const frame = view.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    const words = event.pointerType === "mouse" && !event.buttons ? find([x - 1, y - 1]) : "";
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words;
    // On the side where there is more room, so that it never leaves the picture.
    const right = x > frame.width / 2;
    tip.style.left = right ? "" : `${x + 14}px`;
    tip.style.right = right ? `${frame.width - x + 14}px` : "";
    tip.style.maxWidth = `${(right ? x : frame.width - x) - 18}px`;
    tip.style.top = `${view.canvas.offsetTop + Math.max(0, y - 12)}px`;
  });
  view.canvas.addEventListener("pointerleave", () => (tip.hidden = true));
}

/** Calls `drag(at, moved)` in pixels while the pointer is down, `moved` null at first, and `step(dx, dy)` for keys. */
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
