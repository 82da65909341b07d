// SPDX-License-Identifier: Apache-2.0
// Arrows from producer to consumer over the figure: of one instruction, or all of a part.

class Arrows {
  constructor(grid) {
    this.grid = grid;
    this.schedule = grid.schedule;
    this.marked = [];
  }

  clear() {
    this.grid.overlay.replaceChildren();
    for (const [element, name] of this.marked) element.classList.remove(name);
    this.marked = [];
  }

  mark(element, name) {
    element.classList.add(name);
    this.marked.push([element, name]);
  }

  /** What an instruction reads, and who reads what it makes. */
  show(id) {
    this.clear();
    const { cells, rows } = this.grid;
    const into = merged(this.schedule.into[id].filter(({ from }) => from >= 0));
    const out = merged(this.schedule.outOf[id]);
    this.mark(cells[id], 'pointed');
    this.mark(rows[this.schedule.cells[id].packet], 'pointed-row');
    for (const { from } of into) this.mark(cells[from], 'producer');
    for (const { to } of out) this.mark(cells[to], 'consumer');
    const labelled = into.length + out.length <= 14;
    this.draw(into.map((arrow) => ['in', arrow]).concat(out.map((arrow) => ['out', arrow])), labelled);
  }

  /** All arrows that end in a part, but for those of addresses, which go everywhere. */
  showPart(part) {
    this.clear();
    const most = 800;
    const arrows = this.schedule.arrows.filter(({ from, to, register }) => from >= 0 && !/^[AO]R/.test(register) &&
      this.schedule.partOf[this.schedule.cells[to].packet] === part);
    this.draw(merged(arrows).slice(0, most).map((arrow) => ['all', arrow]), false);
  }

  draw(arrows, labelled) {
    const { overlay, table, cells } = this.grid;
    const origin = table.getBoundingClientRect();
    const boxOf = (element) => {
      const box = element.getBoundingClientRect();
      return { left: box.left - origin.left, right: box.right - origin.left, top: box.top - origin.top, bottom: box.bottom - origin.top,
        middle: (box.left + box.right) / 2 - origin.left };
    };
    // The heads are drawn, not markers: a marker's colour does not follow the line's in all browsers.
    const lines = [], labels = [];
    const line = (kind, wraps, path, head) => {
      lines.push(svg('path', { class: `arrow ${kind}${wraps ? ' wraps' : ''}`, d: path }));
      if (head) lines.push(svg('path', { class: `arrow ${kind}`, d: `M${head.x - 3.5},${head.y - 6} L${head.x},${head.y} L${head.x + 3.5},${head.y - 6}` }));
    };
    const spread = new Map();  // arrows that end in one cell come in side by side
    arrows.forEach(([kind, arrow], index) => {
      const from = boxOf(cells[arrow.from]), to = boxOf(cells[arrow.to]);
      const nth = spread.get(arrow.to) ?? 0;
      spread.set(arrow.to, nth + 1);
      const x1 = from.middle, y1 = from.bottom - 2;
      const x2 = Math.min(to.right - 6, Math.max(to.left + 8, to.middle + (nth % 2 ? 1 : -1) * Math.ceil(nth / 2) * 11)), y2 = to.top + 1;
      const element = `${arrow.register} +${arrow.latency}`;
      if (arrow.wraps || to.top < from.bottom - 4) {
        // Out at the bottom of the producer's part, in again at the top of the consumer's.
        const down = boxOf(this.bodyOf(arrow.from)).bottom - 2, up = boxOf(this.bodyOf(arrow.to)).top + 20;
        const bend = 12 + index % 5 * 4;
        line(kind, arrow.wraps, `M${x1},${y1} C${x1 + bend},${y1 + 14} ${x1 + bend},${down - 14} ${x1 + bend},${down}`, { x: x1 + bend, y: down });
        line(kind, arrow.wraps, `M${x2 - bend},${up} C${x2 - bend},${up + 14} ${x2},${y2 - 18} ${x2},${y2}`, { x: x2, y: y2 });
        if (labelled) labels.push([(kind === 'out' ? x1 + bend : x2), (kind === 'out' ? (y1 + down) / 2 : (up + y2) / 2), element]);
      } else {
        const reach = Math.max(10, (y2 - y1) * 0.45);
        line(kind, false, `M${x1},${y1} C${x1},${y1 + reach} ${x2},${y2 - reach} ${x2},${y2}`, { x: x2, y: y2 });
        if (labelled) labels.push([(x1 + x2) / 2, (y1 + y2) / 2, element]);
      }
    });
    overlay.replaceChildren(...lines, ...spreadOut(labels).map(([x, y, text]) => labelAt(x, y, text)));
  }

  bodyOf(id) { return this.grid.bodies[this.schedule.partOf[this.schedule.cells[id].packet]]; }
}

/** One arrow for the registers that go from one instruction to another: "VR16, VR17". */
function merged(arrows) {
  const all = new Map();
  for (const arrow of arrows) {
    const key = `${arrow.from} ${arrow.to}`;
    const known = all.get(key);
    if (known) known.register += known.register.includes(arrow.register) ? '' : `, ${arrow.register}`;
    else all.set(key, { ...arrow });
  }
  return [...all.values()];
}

function labelAt(x, y, text) {
  const width = 6 * text.length + 8;
  return svg('g', { class: 'arrow-label' }, svg('rect', { x: x - width / 2, y: y - 7.5, width, height: 15, rx: 3 }), svg('text', { x, y }, text));
}

/** Moves labels down until none lies on another. */
function spreadOut(labels) {
  const placed = [];
  for (let [x, y, text] of labels.sort((a, b) => a[1] - b[1])) {
    while (placed.some(([px, py, other]) => Math.abs(px - x) < 3 * (text.length + other.length) + 10 && Math.abs(py - y) < 15)) y += 3;
    placed.push([x, y, text]);
  }
  return placed;
}
