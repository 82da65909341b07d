// SPDX-License-Identifier: Apache-2.0
// The figure of one schedule: a table with a body a part, a row a packet, a column a unit.

/** Pixels: a character of a mnemonic and of operands, what stands beside each in a cell, other columns. grid.css sets the type. */
const WIDE = { name: 6.35, besideName: 21, operand: 5.85, besideOperands: 12, cycle: 44, live: 52, unused: 34 };
const COMPACT = { name: 5.2, besideName: 9, operand: 0, besideOperands: 0, cycle: 38, live: 0, unused: 34 };
const LONGEST_OPERANDS = 19;  // characters: four vectors; what is longer, a label or a constant, is cut and whole in the panel

/** The units that one of the schedules uses: those a compact figure has columns for, so that two of them have the same. */
function unitsUsed(schedules) {
  return schedules[0].units.map((_, unit) => unit).filter((unit) => schedules.some((schedule) => schedule.cells.some((cell) => cell.unit === unit)));
}

class Grid {
  constructor(schedule) {
    this.schedule = schedule;
    this.used = schedule.units.map((_, unit) => schedule.cells.some((cell) => cell.unit === unit));
    this.table = make('table.grid', { role: 'grid', 'aria-label': `Schedule of ${schedule.name}: a row a cycle, a column a unit` });
    this.overlay = svg('svg', { 'aria-hidden': 'true' });
    this.figure = make('div.figure', {}, this.table, this.overlay);
    this.build(false, schedule.units.map((_, unit) => unit));
  }

  /** Compact: mnemonics alone, no column of live registers, and columns for `units` alone. */
  build(compact, units) {
    this.compact = compact;
    this.units = units;
    this.cells = [];  // by instruction
    this.rows = [];   // by packet
    this.bodies = []; // by part
    this.table.replaceChildren(this.columns(), this.head());
    this.schedule.parts.forEach((part, index) => this.table.append(this.body(part, index)));
    const first = this.cells.find((cell) => cell);
    if (first) first.tabIndex = 0;
  }

  get columnCount() { return 1 + this.units.length + (this.compact ? 0 : 1); }

  /** A column is as wide as its longest text asks; an unused one only shows that it is there. */
  columns() {
    const size = this.compact ? COMPACT : WIDE;
    const needed = this.schedule.units.map(() => size.unused);
    for (const [id, cell] of this.schedule.cells.entries()) {
      if (cell.unit < 0) continue;
      const name = cell.operation.length + (cell.predicate ? cell.predicate.length + 1 : 0) + (this.schedule.isHazard(id) ? 2 : 0);
      const operands = Math.min(LONGEST_OPERANDS, this.operands(cell).length);
      needed[cell.unit] = Math.max(needed[cell.unit], name * size.name + size.besideName, operands * size.operand + size.besideOperands);
    }
    this.widths = [{ least: size.cycle }, ...this.units.map((unit) => ({ least: needed[unit], grows: this.used[unit] })),
      ...(this.compact ? [] : [{ least: size.live }])];
    return make('colgroup', {}, ...this.widths.map(() => make('col', {})));
  }

  head() {
    const names = this.schedule.units;
    return make('thead', {}, make('tr', {}, make('th.corner', { scope: 'col', title: 'Cycle within its part' }, 'cyc.'),
      ...this.units.map((unit) => make(this.used[unit] ? 'th' : 'th.unused', { scope: 'col', title: this.used[unit] ? names[unit] : `${names[unit]}: not used` }, names[unit])),
      this.compact ? null : make('th.live', { scope: 'col', title: 'Registers R and VR that hold a value still needed', style: 'text-align:right' }, 'live')));
  }

  /**
   * Columns of units share what is left of the place. Widths are percentages, so that paper gets the same. Where the texts do not fit,
   * the figure scrolls in both directions, with head and cycles in view.
   */
  fit() {
    this.figure.classList.remove('scrolls');
    const total = (columns) => columns.reduce((sum, { least }) => sum + least, 0);
    const needed = Math.ceil(total(this.widths)), place = this.figure.clientWidth;
    const width = Math.max(needed, place), still = total(this.widths.filter(({ grows }) => !grows));
    const factor = (width - still) / Math.max(1, needed - still);
    [...this.table.querySelectorAll('col')].forEach((column, c) => {
      const { least, grows } = this.widths[c];
      column.style.width = `${100 * (grows ? least * factor : least) / width}%`;
    });
    this.figure.style.setProperty('--least', `${needed}px`);
    this.figure.classList.toggle('scrolls', needed > place);
  }

  body(part, index) {
    const { schedule } = this;
    const body = make(`tbody.${part.kind}`, { 'data-part': index });
    const labels = schedule.labelsOf.get(part.first) ?? [];
    body.append(make('tr.part', {}, make('th', { colspan: this.columnCount, scope: 'rowgroup' },
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
      const cell = make('td.idle', { colspan: this.units.length, tabindex: -1, 'data-cell': id, role: 'gridcell' },
        `SNOP ${cycles}: ${plural(cycles, 'idle cycle')}`);
      if (schedule.isHazard(id)) cell.classList.add('hazard');
      this.cells[id] = cell;
      row.append(cell);
    } else {
      const at = new Map(schedule.cellsOf[packet].map((id) => [schedule.cells[id].unit, id]));
      this.units.forEach((unit) => row.append(at.has(unit) ? this.cell(at.get(unit)) : document.createElement('td')));
    }
    const [r, vr] = schedule.liveCounts(packet);
    if (!this.compact) row.append(make('td.live', { title: `${r} R and ${vr} VR hold a value that is still needed` }, `${r} · ${vr}`));
    this.rows[packet] = row;
    return row;
  }

  operands(cell) { return cell.operands.replaceAll(', ', ','); }

  cell(id) {
    const { schedule } = this;
    const cell = schedule.cells[id];
    const hazards = schedule.findingsOf[id].filter((finding) => finding.hazard);
    const label = `${schedule.units[cell.unit]}, ${schedule.placeOf(cell.packet)}: ${cell.text}` + hazards.map((finding) => `. Hazard: ${finding.message}`).join('') +
      schedule.findingsOf[id].filter((finding) => !finding.hazard && finding.severity === 'warning').map((finding) => `. Warning: ${finding.message}`).join('');
    const stripe = make('span.stripe', { 'aria-hidden': 'true' },
      ...[cell.chain, ...cell.also].map((chain) => make('i', { style: `--hue:${hueOf(chain)}` })));
    const element = make('td.op', { role: 'gridcell', tabindex: -1, 'data-cell': id, style: `--hue:${hueOf(cell.chain)}`, 'aria-label': label }, stripe,
      make('span.name', {}, (cell.predicate ? cell.predicate + ' ' : '') + cell.operation),
      make('span.args', { title: cell.operands.length > LONGEST_OPERANDS ? cell.operands : null }, this.operands(cell)), make('span.tag', { 'aria-hidden': 'true' }, letterOf(cell.chain)));
    if (hazards.length) element.classList.add('hazard');
    else if (schedule.isWarned(id)) element.classList.add('warned');
    this.cells[id] = element;
    return element;
  }

  /** The sentences about a packet, below it; a finding about several packets stands at the first. */
  notes(packet) {
    const findings = this.schedule.hazards.filter((finding) => finding.cells.length && this.schedule.cells[finding.cells[0]].packet === packet);
    if (!findings.length) return null;
    return make('tr.hazard-row', {}, make('td', { colspan: this.columnCount },
      ...findings.map((finding) => make('div', {}, make('b', {}, finding.severity === 'note' ? 'hazard' : finding.severity),
        finding.message, finding.suggestion ? make('span.fix', {}, `; ${finding.suggestion}`) : '.'))));
  }

  /** The cell that gets the focus when Tab reaches the table. */
  makeCurrent(id) {
    this.table.querySelector('[data-cell][tabindex="0"]')?.setAttribute('tabindex', '-1');
    this.cells[id].tabIndex = 0;
  }

  setNow(packet, faulted = false) {
    const before = this.table.querySelector('tr.now');
    before?.classList.remove('now', 'faulted');
    before?.removeAttribute('aria-current');
    if (packet === null || !this.rows[packet]) return;
    this.rows[packet].classList.add('now');
    this.rows[packet].classList.toggle('faulted', faulted);
    this.rows[packet].setAttribute('aria-current', 'step');
    keepVisible(this.rows[packet]);
  }
}

/** Scrolls only when the element is hidden behind the head or the panel, or in a figure that scrolls. */
function keepVisible(element) {
  if (element.closest('.scrolls')) element.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  const box = element.getBoundingClientRect();
  const bottom = byId('dock').getBoundingClientRect().top;
  if (box.top < 60 || box.bottom > bottom - 20) {
    window.scrollBy({ top: box.top - Math.max(60, (bottom - 60) * 0.35) });
  }
}
