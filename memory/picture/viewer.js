"use strict";
// Mouse, keyboard, strategy buttons, tooltip. The address after # names a strategy and a buffer
// ("#hybrid/conv1.data"), so that a link can point at one.

const element = (id) => document.getElementById(id);

class Viewer {
  constructor(data) {
    this.data = data;
    this.plans = data.plans.map((raw) => new Plan(raw, data.names));
    this.canvas = element("picture");
    this.picture = new Picture(this.canvas, data);
    this.view = { clock: false };
    this.pinned = false;
    this.marked = null;
    element("title").textContent = data.title;
    this.buttons();
    this.listen();
    const [strategy, buffer] = decodeURIComponent(location.hash.slice(1)).split("/", 2);
    const wanted = this.plans.findIndex((p) => p.strategy === (strategy || data.first));
    this.choose(Math.max(0, wanted));
    this.draw(); // now, not with the next frame: pointing needs the scales
    const life = buffer && this.plan.byName.get(buffer);
    if (life) this.pin(life);
  }

  // -- state -------------------------------------------------------------------------------------

  choose(index) {
    this.plan = this.plans[index];
    this.pinned = false;
    this.marked = null;
    element("tip").hidden = true;
    [...element("strategies").children].forEach((button, n) =>
      button.setAttribute("aria-selected", String(n === index)));
    this.words();
    this.whole();
  }

  words() {
    const { plan, data } = this, about = plan.about ? ` (${plan.about})` : "";
    const parts = [`${plan.strategy}${about}`, `${size(plan.bytes)} on the device`];
    if (plan.host) parts.push(`${size(plan.host)} on the host`, `${size(plan.moved)} moved each way`);
    const reuse = this.plans.find((p) => p.strategy === "reuse");
    let time = `${duration(plan.seconds * 1e6)} an iteration (${data.figures} figures)`;
    if (reuse && reuse !== plan) {
      const more = 100 * (plan.seconds / reuse.seconds - 1);
      time += `, ${more < 0 ? "−" : "+"}${Math.abs(more).toFixed(1)} % against reuse`;
    }
    element("summary").textContent = [...parts, time].join(" · ");
    const saved = 100 * (1 - plan.bytes / data.bvlc);
    element("percent").textContent = `${Math.abs(saved).toFixed(1)} %`;
    element("against").textContent =
      `${saved < 0 ? "more" : "less"} than BVLC Caffe's ${size(data.bvlc)}`;
  }

  whole() {
    const { plan, view } = this, budget = this.data.budget;
    view.x0 = 0;
    view.x1 = view.clock ? plan.clock[plan.count] : plan.count;
    view.y0 = plan.lowest();
    view.y1 = 1.03 * Math.max(plan.bytes, budget && budget <= 1.5 * plan.bytes ? budget : 0);
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = false;
    this.picture.show(this.plan, this.view, this.marked);
    if (this.cursor === undefined) this.legend(this.plan.inUse(this.data.kinds.length).peak, true);
  }

  // -- the column on the right: what is in memory at one instruction -----------------------------

  legend(n, peak) {
    const { plan, data } = this, { curves } = plan.inUse(data.kinds.length);
    const aside = element("legend");
    aside.replaceChildren();
    const i = plan.instructions[n];
    add(aside, "h2", peak ? "at the peak" : `at ${n}: ${i.op} ${i.target}`);
    let all = plan.scratch[1];
    const entry = (color, words, bytes) => {
      const row = add(aside, "div");
      add(row, "i").style.background = color;
      add(row, "span", words);
      add(row, "b", bytes ? size(bytes) : "-");
    };
    data.kinds.forEach(([words, color], kind) => {
      const bytes = curves[kind][n] + (words === "scratch" ? plan.scratch[1] : 0);
      if (curves[kind].some(Boolean) || bytes) entry(color, words, bytes);
      all += curves[kind][n];
    });
    for (const [words, color, bytes] of plan.persistent) {
      if (bytes > 0.0005 * plan.bytes) entry(color, words, bytes);
      all += bytes;
    }
    const row = add(aside, "div");
    row.className = "all";
    add(row, "i");
    add(row, "span", "in use");
    add(row, "b", size(all));
    add(aside, "p", "Green arrows: offloads to the host. Blue arrows: fetches back. Pale: a place "
      + "that only one buffer ever uses, empty then.");
  }

  // -- pointing ----------------------------------------------------------------------------------

  point(event) {
    if (this.pinned) return;
    const box = this.canvas.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    if (px < LEFT) return;
    this.cursor = this.picture.instructionAt(px);
    this.legend(this.cursor, false);
    const life = this.picture.lifeAt(px, py);
    const stay = life ? null : this.picture.stayAt(px, py);
    const found = life || (stay && this.plan.byName.get(stay.buffer));
    this.mark(found ? found.origin : null);
    if (found) this.tip(this.plan.describe(found, this.data.kinds), event.clientX, event.clientY);
    else if (py < this.picture.bottom) this.tip(this.instruction(this.cursor), event.clientX, event.clientY);
    else element("tip").hidden = true;
  }

  instruction(n) {
    const i = this.plan.instructions[n], half = n < this.plan.turn ? "forward" : "backward";
    return {
      title: `${n}: ${i.op} ${i.target}`,
      table: [
        ["half", half],
        ["time", duration(this.plan.micro[n])],
        ["in use", size(this.plan.floor + this.plan.inUse(this.data.kinds.length).total[n])],
      ],
      fate: "",
    };
  }

  pin(life) {
    this.cursor = life.start;
    this.mark(life.origin);
    this.draw();
    const box = this.canvas.getBoundingClientRect(), [x, y, width] = this.picture.boxOf(life);
    this.tip(this.plan.describe(life, this.data.kinds), box.left + x + width, box.top + y);
    this.legend(life.start, false);
    this.pinned = true;
  }

  mark(origin) {
    if (origin === this.marked) return;
    this.marked = origin;
    this.redraw();
  }

  tip({ title, table, fate }, x, y) {
    const tip = element("tip");
    tip.replaceChildren();
    add(tip, "h3", title);
    const body = add(add(tip, "table"), "tbody");
    for (const [key, value] of table) {
      const row = add(body, "tr");
      add(row, "td", key);
      add(row, "td", value);
    }
    if (fate) add(tip, "p", fate);
    tip.hidden = false;
    const left = x + 18 + tip.offsetWidth > innerWidth ? x - 18 - tip.offsetWidth : x + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, Math.min(y + 12, innerHeight - tip.offsetHeight - 8))}px`;
  }

  // -- zoom and pan ------------------------------------------------------------------------------

  zoom(factor, px, py, address) {
    const { view, picture } = this;
    if (address) {
      const at = picture.bytesAt(py);
      view.y0 = at - (at - view.y0) * factor;
      view.y1 = at + (view.y1 - at) * factor;
    } else {
      const share = (px - LEFT) / (picture.width - LEFT), at = view.x0 + share * (view.x1 - view.x0);
      view.x0 = at - (at - view.x0) * factor;
      view.x1 = at + (view.x1 - at) * factor;
    }
    this.inside();
  }

  pan(dx, dy) {
    const { view, picture } = this;
    const x = dx * (view.x1 - view.x0) / (picture.width - LEFT);
    const y = dy * (view.y1 - view.y0) / picture.arenaBox.height;
    view.x0 -= x;
    view.x1 -= x;
    view.y0 += y;
    view.y1 += y;
    this.inside();
  }

  // Keeps the view on the picture, and at least a few instructions wide.
  inside() {
    const { view, plan } = this, end = view.clock ? plan.clock[plan.count] : plan.count;
    const fit = (low, high, first, last, least) => {
      const span = Math.min(last - first, Math.max(least, high - low));
      const start = Math.min(Math.max(first, (low + high - span) / 2), last - span);
      return [start, start + span];
    };
    const top = 1.03 * Math.max(plan.bytes, this.data.budget <= 1.5 * plan.bytes ? this.data.budget || 0 : 0);
    [view.x0, view.x1] = fit(view.x0, view.x1, 0, end, Math.min(end, view.clock ? end / 5e4 : 4));
    [view.y0, view.y1] = fit(view.y0, view.y1, 0, top, top / 2e4);
    this.redraw();
  }

  // -- listening ---------------------------------------------------------------------------------

  buttons() {
    this.plans.forEach((plan, n) => {
      const button = add(element("strategies"), "button", plan.strategy);
      button.setAttribute("role", "tab");
      add(button, "small", size(plan.bytes));
      button.addEventListener("click", () => this.choose(n));
    });
    element("reset").addEventListener("click", () => this.whole());
    element("clock").addEventListener("change", (event) => {
      this.view.clock = event.target.checked;
      this.whole();
    });
  }

  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) { this.point(event); return; }
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      canvas.classList.add("moving");
      element("tip").hidden = true;
      this.pinned = false;
      this.pan(dx, dy);
      drag = { x: event.clientX, y: event.clientY, moved: true };
    });
    canvas.addEventListener("pointerup", (event) => {
      canvas.classList.remove("moving");
      if (drag && !drag.moved) {
        this.pinned = !this.pinned && this.marked !== null;
        if (!this.pinned) this.point(event);
      }
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => {
      if (this.pinned) return;
      element("tip").hidden = true;
      this.cursor = undefined;
      this.mark(null);
      this.redraw();
    });
    canvas.addEventListener("dblclick", () => this.whole());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect(), turn = event.deltaY || event.deltaX;
      this.zoom(Math.exp(turn * 0.0015), event.clientX - box.left, event.clientY - box.top,
        event.shiftKey);
    }, { passive: false });
    addEventListener("resize", () => this.redraw());
    addEventListener("keydown", (event) => this.key(event.key));
  }

  key(key) {
    const middle = [(LEFT + this.picture.width) / 2, this.picture.arenaBox.top + this.picture.arenaBox.height / 2];
    const moves = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (moves[key]) this.pan(...moves[key]);
    else if (key === "+" || key === "=") this.zoom(0.8, ...middle, false);
    else if (key === "-") this.zoom(1.25, ...middle, false);
    else if (key === "0") this.whole();
    else if (key === "Escape") { this.pinned = false; element("tip").hidden = true; this.mark(null); }
    else if (this.plans[Number(key) - 1]) this.choose(Number(key) - 1);
  }
}

function add(parent, tag, text = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  parent.append(made);
  return made;
}

function failed(what) {
  document.body.dataset.error = String(what);
  element("summary").textContent = `This page could not be shown: ${what}`;
}

addEventListener("error", (event) => failed(event.message));
addEventListener("unhandledrejection", (event) => failed(event.reason));
unpack(element("data").textContent).then((data) => {
  window.viewer = new Viewer(data);
  document.body.dataset.ready = "yes";
});
