"use strict";
// Drawing on the canvas. `view` holds the visible part: x0..x1 (instructions or time) and
// y0..y1 (bytes) of the arena.

const INK = "#1d1d24", FAINT = "#5c5c66", GRID = "#dadae0", BUDGET = "#b3001b";
const OUT = "#005a4e", BACK = "#1f78b4", HOST = "#8cc9ee";
const FONT = 'Inter, "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif';
const LEFT = 108, MOST_ARROWS = 160;

class Picture {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    this.pen = canvas.getContext("2d");
  }

  show(plan, view, marked) {
    this.plan = plan;
    this.view = view;
    this.layout();
    const pen = this.pen;
    pen.clearRect(0, 0, this.width, this.height);
    this.backdrop();
    this.curve();
    this.arena(marked);
    this.strip();
    if (plan.stays.length) this.host(marked);
    this.axis();
  }

  layout() {
    const scale = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    const room = this.height - 24 - 46 - 60;
    const host = this.plan.stays.length ? Math.round(room * 0.15) : 0;
    const curve = Math.round(room * 0.26);
    this.curveBox = { top: 24, height: curve };
    this.arenaBox = { top: 24 + curve + 22, height: room - curve - host };
    this.stripBox = { top: this.arenaBox.top + this.arenaBox.height + 6, height: 18 };
    this.hostBox = { top: this.stripBox.top + 24, height: host };
    this.bottom = host ? this.hostBox.top + host : this.stripBox.top + 20;
  }

  // -- scales ------------------------------------------------------------------------------------

  position(n) {
    if (!this.view.clock) return n;
    const whole = Math.min(Math.floor(n), this.plan.count - 1), { clock } = this.plan;
    return clock[whole] + (n - whole) * (clock[whole + 1] - clock[whole]);
  }

  x(n) {
    const { x0, x1 } = this.view;
    return LEFT + (this.width - LEFT) * (this.position(n) - x0) / (x1 - x0);
  }

  instructionAt(px) {
    const { x0, x1 } = this.view;
    const value = x0 + (x1 - x0) * (px - LEFT) / (this.width - LEFT);
    if (!this.view.clock) return Math.min(this.plan.count - 1, Math.max(0, Math.floor(value)));
    let low = 0, high = this.plan.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.plan.clock[middle] <= value) low = middle; else high = middle - 1;
    }
    return low;
  }

  y(bytes) {
    const { y0, y1 } = this.view, box = this.arenaBox;
    return box.top + box.height * (1 - (bytes - y0) / (y1 - y0));
  }

  bytesAt(py) {
    const { y0, y1 } = this.view, box = this.arenaBox;
    return y0 + (y1 - y0) * (1 - (py - box.top) / box.height);
  }

  // -- parts -------------------------------------------------------------------------------------

  text(words, x, y, { align = "left", color = INK, bold = false, px = 13, halo = false } = {}) {
    const pen = this.pen;
    pen.font = `${bold ? "600 " : ""}${px}px ${FONT}`;
    pen.textAlign = align;
    if (halo) {
      pen.lineWidth = 4;
      pen.lineJoin = "round";
      pen.strokeStyle = "#fff";
      pen.strokeText(words, x, y);
    }
    pen.fillStyle = color;
    pen.fillText(words, x, y);
  }

  clipped(box, draw) {
    const pen = this.pen;
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, box.top, this.width - LEFT, box.height);
    pen.clip();
    draw();
    pen.restore();
  }

  backdrop() {
    const pen = this.pen, turn = Math.min(this.width, Math.max(LEFT, this.x(this.plan.turn)));
    for (const box of [this.curveBox, this.arenaBox]) {
      pen.fillStyle = "#f6f7fa";
      pen.fillRect(LEFT, box.top, turn - LEFT, box.height);
      pen.fillStyle = "#fbf5ee";
      pen.fillRect(turn, box.top, this.width - turn, box.height);
    }
    const style = { align: "center", bold: true, px: 14 };
    if (turn - LEFT > 80) this.text("forward →", (LEFT + turn) / 2, 15, style);
    if (this.width - turn > 80) this.text("backward →", (turn + this.width) / 2, 15, style);
  }

  bytesAxis(y, low, high, box, label) {
    const step = 2 ** Math.ceil(Math.log2(Math.max(1, (high - low) / Math.max(3, box.height / 60))));
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
      this.pen.fillStyle = GRID;
      this.pen.fillRect(LEFT, y(value), this.width - LEFT, 1);
      this.text(value ? tick(value) : "0", LEFT - 8, y(value) + 4, { align: "right", color: FAINT });
    }
    this.pen.save();
    this.pen.translate(14, box.top + box.height / 2);
    this.pen.rotate(-Math.PI / 2);
    this.text(label, 0, 0, { align: "center", bold: true, px: 14 });
    this.pen.restore();
  }

  curve() {
    const { plan, data, pen } = this, box = this.curveBox;
    const { curves, total, peak } = plan.inUse(data.kinds.length);
    const budget = data.budget && data.budget <= 1.5 * plan.bytes ? data.budget : 0;
    const low = plan.lowest();
    const high = Math.max(plan.bytes, budget) * 1.03;
    const y = (bytes) => box.top + box.height * (1 - (Math.max(bytes, low) - low) / (high - low));
    this.bytesAxis(y, low, high, box, "in use");
    this.clipped(box, () => {
      let base = 0;
      for (const [, color, bytes] of plan.persistent) {
        pen.fillStyle = color;
        pen.fillRect(LEFT, y(base + bytes), this.width - LEFT, y(base) - y(base + bytes));
        base += bytes;
      }
      const columns = this.columns(total);
      curves.forEach((curve, kind) => {
        pen.fillStyle = data.kinds[kind][1];
        for (const column of columns) {
          const bytes = curve[column.n];
          if (!bytes) continue;
          const top = y(column.base + bytes);
          pen.fillRect(column.left, top, column.width, y(column.base) - top);
          column.base += bytes;
        }
      });
      this.level(y(plan.bytes), INK, [7, 4]);
      if (budget) this.level(y(budget), BUDGET, [2, 3]);
    });
    const early = this.x(peak) < this.width / 2;
    this.text(`allocated once: ${size(plan.bytes)}`, early ? this.width - 8 : LEFT + 8,
      y(plan.bytes) + 16, { align: early ? "right" : "left", bold: true, halo: true });
    if (budget) {
      this.text(`budget ${size(budget)}`, this.width - 8, y(budget) - 5,
        { align: "right", color: BUDGET, bold: true, halo: true });
    }
    const px = this.x(peak + 0.5);
    if (px > LEFT && px < this.width) {
      const where = plan.computing(peak), level = plan.floor + total[peak];
      pen.beginPath();
      pen.arc(px, y(level), 5, 0, 7);
      pen.fillStyle = "#fff";
      pen.fill();
      pen.strokeStyle = INK;
      pen.lineWidth = 2;
      pen.stroke();
      this.text(`peak ${size(level)}: ${where.op} ${where.target}`, px + (early ? 10 : -10),
        Math.min(y(level) + 34, box.top + box.height - 6),
        { align: early ? "left" : "right", bold: true, halo: true });
    }
  }

  // One entry per instruction, or the fullest of each pixel column.
  columns(total) {
    const found = [], first = this.instructionAt(LEFT), last = this.instructionAt(this.width);
    let open = null;
    for (let n = first; n <= last; n++) {
      const left = Math.floor(this.x(n)), right = Math.floor(this.x(n + 1));
      if (open && left === open.left) {
        if (total[n] > total[open.n]) open.n = n;
        open.width = Math.max(1, right - left);
      } else {
        open = { left, width: Math.max(1, right - left), n, base: this.plan.floor };
        found.push(open);
      }
    }
    return found;
  }

  level(y, color, dash) {
    const pen = this.pen;
    pen.strokeStyle = color;
    pen.lineWidth = 1.6;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(LEFT, y);
    pen.lineTo(this.width, y);
    pen.stroke();
    pen.setLineDash([]);
  }

  boxOf(life) {
    const left = this.x(life.start), top = this.y(life.offset + life.bytes);
    return [left, top, this.x(life.end + 1) - left, this.y(life.offset) - top];
  }

  arena(marked) {
    const { plan, data, pen, view } = this, box = this.arenaBox;
    this.bytesAxis((b) => this.y(b), Math.max(0, view.y0), view.y1, box, "device memory, by address");
    this.clipped(box, () => {
      let base = 0;
      for (const [words, color, bytes] of plan.persistent) {
        const top = this.y(base + bytes), height = this.y(base) - top;
        pen.fillStyle = color;
        pen.fillRect(LEFT, top, this.width - LEFT, height);
        const light = /^#[4-7]/.test(color) ? "#fff" : "#000";
        if (height > 15) this.text(`${words}  ${size(bytes)}`, LEFT + 8, top + height / 2 + 4, { color: light });
        base += bytes;
      }
      const [offset, bytes] = plan.scratch, top = this.y(offset + bytes);
      pen.fillStyle = "#e2e2e8";
      pen.fillRect(LEFT, top, this.width - LEFT, this.y(offset) - top);
      pen.globalAlpha = 0.16;
      for (const life of plan.lives) {
        if (!life.alone) continue;
        const [, y, , height] = this.boxOf(life);
        pen.fillStyle = data.kinds[life.kind][1];
        pen.fillRect(LEFT, y, this.width - LEFT, height);
      }
      pen.globalAlpha = 1;
      for (const life of plan.lives) this.life(life, marked);
      if (data.budget && data.budget < view.y1) this.level(this.y(data.budget), BUDGET, [2, 3]);
    });
  }

  life(life, marked) {
    const [x, y, width, height] = this.boxOf(life), pen = this.pen, box = this.arenaBox;
    if (x > this.width || x + width < LEFT || y > box.top + box.height || y + height < box.top) return;
    const [, fill, ink] = this.data.kinds[life.kind];
    const gap = width > 4 && height > 4 ? 0.7 : 0;
    pen.fillStyle = fill;
    pen.globalAlpha = marked && life.origin !== marked ? 0.35 : 1;
    pen.fillRect(x, y, Math.max(0.6, width - gap), Math.max(0.1, height - gap));
    pen.globalAlpha = 1;
    if (marked && life.origin === marked) {
      pen.strokeStyle = INK;
      pen.lineWidth = 2.5;
      pen.strokeRect(x, y, Math.max(1, width), Math.max(1, height));
    }
    if (width > 46 && height > 15) {
      const left = Math.max(x, LEFT), room = Math.floor((x + width - left - 10) / 7);
      let words = life.name.replace(/\.data\b/, "");
      if (words.length > room) words = room > 4 ? `${words.slice(0, room - 1)}…` : "";
      this.text(words, left + 5, y + height / 2 + 4, { color: ink, px: 12 });
    }
  }

  strip() {
    const { plan, pen, data } = this, box = this.stripBox;
    this.clipped(box, () => {
      const first = this.instructionAt(LEFT), last = this.instructionAt(this.width);
      for (const special of [false, true]) {
        for (let n = first; n <= last; n++) {
          const op = plan.instructions[n].op, color = data.strip[op];
          if (Boolean(color) !== special || op === "wait") continue;
          const copy = op === "offload" || op === "fetch";
          pen.fillStyle = color || (n < plan.turn ? "#c6c9d3" : "#ddcbb5");
          // where the axis is time, starting a copy has no width of its own
          pen.fillRect(this.x(n), box.top + (copy ? 10 : 0), Math.max(0.8, this.x(n + 1) - this.x(n)), 9);
        }
      }
    });
    this.text("instructions", LEFT - 8, box.top + 12, { align: "right", color: FAINT, px: 12 });
  }

  host(marked) {
    const { plan, pen } = this, box = this.hostBox;
    const whole = plan.stays.reduce((sum, s) => sum + s.bytes, 0) || 1;
    pen.fillStyle = "#eef4f3";
    pen.fillRect(LEFT, box.top, this.width - LEFT, box.height);
    this.text("host", LEFT - 8, box.top + 14, { align: "right", bold: true });
    this.text(size(plan.host), LEFT - 8, box.top + 31, { align: "right", color: FAINT, px: 12 });
    this.hostY = (bytes) => box.top + box.height * bytes / whole;
    this.clipped(box, () => {
      for (const stay of plan.stays) {
        const left = this.x(stay.start), top = this.hostY(stay.offset);
        const height = Math.max(0.5, this.hostY(stay.offset + stay.bytes) - top - 0.5);
        pen.fillStyle = stay.buffer === marked ? BACK : HOST;
        pen.fillRect(left, top, Math.max(0.6, this.x(stay.end) - left), height);
      }
    });
    const seen = plan.stays.filter((s) => this.x(s.out.start) < this.width && this.x(s.end) > LEFT);
    const step = Math.ceil(2 * seen.length / MOST_ARROWS);
    seen.forEach((stay, n) => {
      if (stay.buffer !== marked && (marked || n % step)) return;
      const y = this.hostY(stay.offset);
      this.arrow(stay.out.start, plan.byName.get(stay.buffer), y, OUT, true);
      if (stay.fetch) this.arrow(stay.fetch.start, plan.byName.get(`${stay.buffer}~`), y, BACK, false);
    });
  }

  arrow(n, life, hostY, color, down) {
    const pen = this.pen, x = this.x(n + 0.5);
    if (!life || x < LEFT || x > this.width) return;
    const box = this.arenaBox;
    const device = Math.min(box.top + box.height, Math.max(box.top, this.y(life.offset + life.bytes / 2)));
    const [from, to] = down ? [device, hostY] : [hostY, device], tip = down ? 7 : -7;
    pen.strokeStyle = pen.fillStyle = color;
    pen.lineWidth = 1.3;
    pen.beginPath();
    pen.moveTo(x, from);
    pen.lineTo(x, to - tip);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x - 3.5, to - tip);
    pen.lineTo(x + 3.5, to - tip);
    pen.lineTo(x, to);
    pen.fill();
  }

  axis() {
    const { view, plan } = this, span = view.x1 - view.x0, y = this.bottom + 18;
    const rough = span / 12, power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
    let step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
    if (!view.clock) step = Math.max(1, step);
    for (let v = Math.ceil(view.x0 / step) * step; v <= view.x1; v += step) {
      const x = LEFT + (this.width - LEFT) * (v - view.x0) / span;
      if (x > this.width - 104) break;
      this.pen.fillStyle = FAINT;
      this.pen.fillRect(x, this.bottom, 1, 5);
      this.text(view.clock ? duration(v) : `${v}`, x, y, { align: "center", color: FAINT, px: 12 });
      const layer = plan.computing(this.instructionAt(x + 1)).target;
      this.text(layer.length > 13 ? `${layer.slice(0, 12)}…` : layer, x, y + 16, { align: "center", color: FAINT, px: 11 });
    }
    this.text(view.clock ? "time" : "instruction", this.width, y, { align: "right", bold: true });
  }

  // -- what is where -----------------------------------------------------------------------------

  lifeAt(px, py) {
    const inside = (box) => py >= box.top && py <= box.top + box.height && px >= LEFT;
    if (!inside(this.arenaBox)) return null;
    let best = null, nearest = 4;
    for (const life of this.plan.lives) {
      const [x, y, width, height] = this.boxOf(life);
      const away = Math.max(x - px, px - x - width, y - py, py - y - height, 0);
      if (away < nearest) { nearest = away || 1e-6; best = life; }
    }
    return best;
  }

  stayAt(px, py) {
    if (!this.plan.stays.length || py < this.hostBox.top || py > this.bottom) return null;
    return this.plan.stays.find((s) => px >= this.x(s.start) && px <= this.x(s.end)
      && py >= this.hostY(s.offset) && py <= this.hostY(s.offset + s.bytes)) || null;
  }
}
