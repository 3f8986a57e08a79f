"use strict";
// The plans of the page, unpacked: instructions, lifetimes, copies, and what is in use when.

const FIELDS = { lives: 9, copies: 5, instructions: 2 };

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function rows(flat, width) {
  const found = [];
  for (let n = 0; n < flat.length; n += width) found.push(flat.slice(n, n + width));
  return found;
}

class Plan {
  constructor(raw, names) {
    Object.assign(this, raw);
    this.instructions = rows(raw.instructions, FIELDS.instructions).map(([op, target]) => ({
      op: names[op], target: names[target],
    }));
    this.lives = rows(raw.lives, FIELDS.lives).map(
      ([name, kind, layer, start, end, counted, offset, bytes, alone]) => ({
        name: names[name], kind, layer: names[layer], start, end, counted, offset, bytes, alone,
        origin: names[name].split("~")[0],
      }));
    this.copies = rows(raw.copies, FIELDS.copies).map(([op, buffer, start, end, bytes]) => ({
      op: names[op], buffer: names[buffer], start, end, bytes,
    }));
    this.count = this.instructions.length;
    this.clock = [0];
    for (const t of raw.micro) this.clock.push(this.clock[this.clock.length - 1] + t);
    this.byName = new Map(this.lives.map((life) => [life.name, life]));
    this.stays = this.hostStays();
    this.use = null;
  }

  // What waits on the host, in the order in which it came: from the end of its offload to its
  // fetch, at an address of its own.
  hostStays() {
    const back = new Map();
    for (const c of this.copies) if (c.op === "fetch") back.set(c.buffer, c);
    let below = 0;
    return this.copies.filter((c) => c.op === "offload").map((out) => {
      const fetch = back.get(out.buffer);
      const stay = {
        buffer: out.buffer, bytes: out.bytes, out, fetch, offset: below,
        start: out.end, end: fetch ? fetch.start : this.count,
      };
      below += out.bytes;
      return stay;
    });
  }

  // Bytes in use by kind at each instruction, and their sum.
  inUse(kinds) {
    if (this.use) return this.use;
    const curves = Array.from({ length: kinds }, () => new Float64Array(this.count + 1));
    for (const life of this.lives) {
      curves[life.kind][life.start] += life.bytes;
      curves[life.kind][life.counted + 1] -= life.bytes;
    }
    const total = new Float64Array(this.count);
    let peak = 0;
    for (const curve of curves) {
      let sum = 0;
      for (let n = 0; n < this.count; n++) {
        sum += curve[n];
        curve[n] = sum;
        total[n] += sum;
      }
    }
    for (let n = 0; n < this.count; n++) {
      const more = total[n] - total[peak];
      if (more > 0 || (more === 0 && !this.computes(peak) && this.computes(n))) peak = n;
    }
    this.use = { curves, total, peak };
    return this.use;
  }

  computes(n) { return !["offload", "fetch", "wait"].includes(this.instructions[n].op); }

  // The first instruction from n on that is neither a copy nor a wait.
  computing(n) {
    while (n < this.count - 1 && !this.computes(n)) n += 1;
    return this.instructions[n];
  }

  // Where the axis of addresses begins at first: where parameters take most of it, near their end.
  lowest() {
    return this.floor > 0.5 * this.bytes ? this.floor - 0.14 * (this.bytes - this.floor) : 0;
  }

  // Everything known about one buffer, as rows of a table, and a sentence about its fate.
  describe(life, kinds) {
    const at = (n) => {
      const i = this.instructions[Math.min(n, this.count - 1)];
      return `${n} (${i.op} ${i.target})`;
    };
    const stay = this.stays.find((s) => s.buffer === life.origin);
    const second = life.name !== life.origin;
    let fate = "its place is free for others after that";
    if (second && kinds[life.kind][0] === "recomputed") {
      fate = `made again here from what was kept; first made as ${life.origin}`;
    } else if (second && stay) {
      fate = `the copy that came back from the host (fetch issued at ${stay.fetch.start})`;
    } else if (stay && life.origin === life.name) {
      fate = `offloaded at ${stay.out.start}, on the host until fetched at `
        + `${stay.fetch ? stay.fetch.start : "the end"}`;
    } else if (this.lives.some((o) => o.name.startsWith(`${life.origin}~`)) && !second) {
      fate = "thrown away then, and computed again in backward";
    } else if (life.alone) {
      fate = "no other buffer ever uses this place";
    }
    return {
      title: life.name,
      table: [
        ["kind", kinds[life.kind][0]],
        ["layer", life.layer || "-"],
        ["size", `${size(life.bytes)} (${life.bytes.toLocaleString("en")} bytes)`],
        ["from", at(life.start)],
        ["to", at(life.end)],
        ["address", `${life.offset.toLocaleString("en")}`],
      ],
      fate,
    };
  }
}

function size(bytes) {
  if (bytes < 1024) return `${Math.round(bytes)} bytes`;
  const units = ["KiB", "MiB", "GiB"];
  let unit = -1;
  do { bytes /= 1024; unit += 1; } while (bytes >= 1024 && unit < 2);
  return `${bytes.toFixed(unit === 2 ? 2 : 1)} ${units[unit]}`;
}

function tick(bytes) {
  for (const [power, unit] of [[30, "GiB"], [20, "MiB"], [10, "KiB"]]) {
    if (bytes >= 2 ** power) return `${parseFloat((bytes / 2 ** power).toFixed(3))} ${unit}`;
  }
  return `${bytes}`;
}

function duration(micro) {
  if (micro >= 1e7) return `${(micro / 1e6).toFixed(1)} s`;
  if (micro >= 1e6) return `${(micro / 1e6).toFixed(2)} s`;
  return micro >= 1e3 ? `${parseFloat((micro / 1e3).toPrecision(3))} ms`
    : `${parseFloat(micro.toPrecision(3))} µs`;
}
