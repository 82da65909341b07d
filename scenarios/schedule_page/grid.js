// SPDX-License-Identifier: Apache-2.0
// The figure of one schedule: a table with a body a part, a row a packet, a column a unit.

class Grid {
  constructor(schedule, compact) {
    this.schedule = schedule;
    this.cells = [];  // by instruction
    this.rows = [];   // by packet
    this.bodies = []; // by part
    this.used = schedule.units.map((_, unit) => schedule.cells.some((cell) => cell.unit === unit));
    this.table = make('table.grid', { role: 'grid', 'aria-label': `Schedule of ${schedule.name}: a row a cycle, a column a unit` },
      this.columns(compact), this.head());
    schedule.parts.forEach((part, index) => this.table.append(this.body(part, index)));
    this.overlay = svg('svg', { 'aria-hidden': 'true' });
    this.figure = make('div.figure', {}, this.table, this.overlay);
    const first = this.cells.find((cell) => cell);
    if (first) first.tabIndex = 0;
  }

  /** A column is as wide as its longest operands ask; an unused one only shows that it is there. */
  columns(compact) {
    const longest = this.schedule.units.map(() => 0);
    for (const cell of this.schedule.cells) {
      if (cell.unit < 0) continue;
      const name = cell.operation.length + (cell.predicate ? cell.predicate.length + 1 : 0);
      longest[cell.unit] = Math.max(longest[cell.unit], compact ? name : Math.max(name + 2, this.operands(cell).length), 6);
    }
    const sum = longest.reduce((a, b, unit) => a + (this.used[unit] ? b + 2 : 0), 0) || 1;
    return make('colgroup', {}, make('col', { style: `width:${compact ? 40 : 44}px` }),
      ...longest.map((width, unit) => make('col', { style: this.used[unit] ? `width:${100 * (width + 2) / sum}%` : `width:${compact ? 16 : 34}px` })),
      make('col', { style: `width:${compact ? 0 : 58}px` }));
  }

  head() {
    const { units } = this.schedule;
    return make('thead', {}, make('tr', {}, make('th', { scope: 'col', title: 'Cycle within its part' }, 'cyc.'),
      ...units.map((unit, u) => make(this.used[u] ? 'th' : 'th.unused', { scope: 'col', title: this.used[u] ? unit : `${unit}: not used` }, unit)),
      make('th.live', { scope: 'col', title: 'Registers R and VR that hold a value still needed', style: 'text-align:right' }, 'live')));
  }

  body(part, index) {
    const { schedule } = this;
    const body = make(`tbody.${part.kind}`, { 'data-part': index });
    const labels = schedule.labelsOf.get(part.first) ?? [];
    body.append(make('tr.part', {}, make('th', { colspan: schedule.units.length + 2, scope: 'rowgroup' },
      make('span.kind', {}, part.kind), ...labels.map((label) => make('b', {}, label + ' ')),
      make('span.size', {}, this.sizeOf(part)))));
    for (let packet = part.first; packet < part.last; ++packet) {
      body.append(this.row(packet));
      const notes = this.notes(packet);
      if (notes) body.append(notes);
    }
    this.bodies.push(body);
    return body;
  }

  sizeOf(part) {
    const loop = part.loop >= 0 ? this.schedule.loops[part.loop] : null;
    const cycles = plural(part.cycles, 'cycle');
    if (part.kind === 'loop') return `${cycles} written, one iteration every ${loop.interval}`;
    if (part.kind === 'prologue') return `${cycles}, leads into ${loop.label || 'the loop'}`;
    if (part.kind === 'epilogue') return `${cycles}, what is left when ${loop.label || 'the loop'} ends`;
    return cycles;
  }

  row(packet) {
    const { schedule } = this;
    const { idle, cycles, line, comment, at } = schedule.packets[packet];
    const cycle = schedule.cycleInPart(packet);
    const row = make('tr', { 'data-packet': packet });
    const title = `cycle ${at} from the top${line ? `, line ${line}` : ''}${comment ? `: ${comment}` : ''}`;
    row.append(make('th.cycle', { scope: 'row', title }, cycles > 1 ? `${cycle}–${cycle + cycles - 1}` : String(cycle)));
    if (idle) {
      const id = schedule.cellsOf[packet][0];
      const cell = make('td.idle', { colspan: schedule.units.length, tabindex: -1, 'data-cell': id, role: 'gridcell' },
        `SNOP ${cycles}: ${plural(cycles, 'idle cycle')}`);
      if (schedule.isHazard(id)) cell.classList.add('hazard');
      this.cells[id] = cell;
      row.append(cell);
    } else {
      const at = new Map(schedule.cellsOf[packet].map((id) => [schedule.cells[id].unit, id]));
      schedule.units.forEach((_, unit) => row.append(at.has(unit) ? this.cell(at.get(unit)) : document.createElement('td')));
    }
    const [r, vr] = schedule.liveCounts(packet);
    row.append(make('td.live', { title: `${r} R and ${vr} VR hold a value that is still needed` }, `${r} · ${vr}`));
    this.rows[packet] = row;
    return row;
  }

  operands(cell) { return cell.operands.replaceAll(', ', ','); }

  cell(id) {
    const { schedule } = this;
    const cell = schedule.cells[id];
    const hazards = schedule.findingsOf[id].filter((finding) => finding.hazard);
    const label = `${schedule.units[cell.unit]}, ${schedule.placeOf(cell.packet)}: ${cell.text}` + hazards.map((finding) => `. Hazard: ${finding.message}`).join('');
    const stripe = make('span.stripe', { 'aria-hidden': 'true' },
      ...[cell.chain, ...cell.also].map((chain) => make('i', { style: `--hue:${hueOf(chain)}` })));
    const element = make('td.op', { role: 'gridcell', tabindex: -1, 'data-cell': id, style: `--hue:${hueOf(cell.chain)}`, 'aria-label': label }, stripe,
      make('span.name', {}, (cell.predicate ? cell.predicate + ' ' : '') + cell.operation),
      make('span.args', {}, this.operands(cell)), make('span.tag', { 'aria-hidden': 'true' }, letterOf(cell.chain)));
    if (hazards.length) element.classList.add('hazard');
    this.cells[id] = element;
    return element;
  }

  /** The sentences about a packet, below it; a finding about several packets stands at the first. */
  notes(packet) {
    const findings = this.schedule.hazards.filter((finding) => finding.cells.length && this.schedule.cells[finding.cells[0]].packet === packet);
    if (!findings.length) return null;
    return make('tr.hazard-row', {}, make('td', { colspan: this.schedule.units.length + 2 },
      ...findings.map((finding) => make('div', {}, make('b', {}, finding.severity === 'note' ? 'hazard' : finding.severity),
        finding.message, finding.suggestion ? make('span.fix', {}, `; ${finding.suggestion}`) : '.'))));
  }

  /** The cell that gets the focus when Tab reaches the table. */
  makeCurrent(id) {
    this.table.querySelector('[data-cell][tabindex="0"]')?.setAttribute('tabindex', '-1');
    this.cells[id].tabIndex = 0;
  }

  setNow(packet) {
    this.table.querySelector('tr.now')?.classList.remove('now');
    if (packet === null || !this.rows[packet]) return;
    this.rows[packet].classList.add('now');
    this.rows[packet].setAttribute('aria-current', 'step');
    keepVisible(this.rows[packet]);
  }
}

/** Scrolls only when the element is hidden behind the head or the panel. */
function keepVisible(element) {
  const box = element.getBoundingClientRect();
  const bottom = byId('dock').getBoundingClientRect().top;
  if (box.top < 60 || box.bottom > bottom - 20) {
    window.scrollBy({ top: box.top - Math.max(60, (bottom - 60) * 0.35) });
  }
}
