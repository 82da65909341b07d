// SPDX-License-Identifier: Apache-2.0
// Keys: from instruction to instruction, from hazard to hazard, along the run.

class Keyboard {
  constructor(page) {
    this.page = page;
    document.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
      if (/^(input|select|textarea)$/i.test(event.target.tagName) && !/^[[\]{}?]$/.test(event.key)) return;
      const action = this.actionOf(event);
      if (!action) return;
      event.preventDefault();
      action();
    });
  }

  actionOf(event) {
    const { page } = this;
    const run = page.run;
    const inGrid = page.current !== null && event.target.closest?.('.grid');
    switch (event.key) {
      case 'ArrowDown': return inGrid && (() => this.vertical(1));
      case 'ArrowUp': return inGrid && (() => this.vertical(-1));
      case 'ArrowRight': return inGrid && (() => this.horizontal(1));
      case 'ArrowLeft': return inGrid && (() => this.horizontal(-1));
      case 'j': return () => this.row(1);
      case 'k': return () => this.row(-1);
      case 'n': return () => this.hazard(1);
      case 'N': return () => this.hazard(-1);
      case ']': return () => (run ? run.move(1) : page.needsRun());
      case '[': return () => (run ? run.move(-1) : page.needsRun());
      case '}': return () => (run ? run.move(16) : page.needsRun());
      case '{': return () => (run ? run.move(-16) : page.needsRun());
      case 'p': return () => (run ? run.play() : page.needsRun());
      case '1': case '2': case '3': case '4': return run && (() => run.setView(VIEWS[Number(event.key) - 1]));
      case 'a': return () => page.toggleArrows();
      case 'd': return () => toggleDock();
      case 's': return () => page.toggleStack();
      case 't': return () => page.toggleTheme();
      case '?': return () => byId('help').showModal();
      case 'Escape': return () => page.leave();
      default: return null;
    }
  }

  here() { return this.page.current ?? { grid: this.page.grids[0], id: this.page.grids[0].cells.findIndex((cell) => cell) }; }

  /** The nearest instruction of the packet `by` rows away that has one in this column, else in any. */
  vertical(by) {
    const { grid, id } = this.here();
    const { schedule } = grid;
    const { unit, packet } = schedule.cells[id];
    for (let p = packet + by; p >= 0 && p < schedule.packets.length; p += by) {
      const found = schedule.cellsOf[p].find((other) => schedule.cells[other].unit === unit);
      if (found !== undefined) return this.page.focus(grid, found);
    }
    return this.row(by);
  }

  horizontal(by) {
    const { grid, id } = this.here();
    const { schedule } = grid;
    const row = [...schedule.cellsOf[schedule.cells[id].packet]].sort((a, b) => schedule.cells[a].unit - schedule.cells[b].unit);
    const next = row[row.indexOf(id) + by];
    if (next !== undefined) return this.page.focus(grid, next);
    const other = this.page.grids[this.page.grids.indexOf(grid) + by];  // the schedule beside
    return other ? this.page.focus(other, other.cells.findIndex((cell) => cell)) : undefined;
  }

  row(by) {
    const { grid, id } = this.here();
    const { schedule } = grid;
    const from = this.page.current ? schedule.cells[id].packet + by : 0;
    if (from < 0 || from >= schedule.packets.length) return;
    const { unit } = schedule.cells[id];
    const cells = schedule.cellsOf[from];
    this.page.focus(grid, [...cells].sort((a, b) => Math.abs(schedule.cells[a].unit - unit) - Math.abs(schedule.cells[b].unit - unit))[0]);
  }

  hazard(by) {
    const { grids, current } = this.page;
    const all = grids.flatMap((grid, g) => [...new Set(grid.schedule.hazards.flatMap(({ cells }) => cells))].sort((a, b) => a - b).map((id) => ({ g, grid, id })));
    if (!all.length) return announce('No hazards found.');
    const here = current ? { g: grids.indexOf(current.grid), id: current.id } : { g: by > 0 ? -1 : grids.length, id: 0 };
    const order = (a, b) => a.g - b.g || a.id - b.id;
    const next = by > 0 ? all.find((one) => order(one, here) > 0) ?? all[0] : all.findLast((one) => order(one, here) < 0) ?? all[all.length - 1];
    return this.page.focus(next.grid, next.id);
  }
}
