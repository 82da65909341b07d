# SPDX-License-Identifier: Apache-2.0
"""The page of `mtsim schedule --html` in headless Chromium, with a real mouse and real keys.

    schedule_page_test.py MTSIM SOURCE_ROOT [SCREENSHOTS]

Exits 77, which CTest reports as skipped, where no Chromium is installed. With a folder SCREENSHOTS it also leaves pictures to look at.
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import webdriver

SKIPPED = 77
MTSIM, ROOT, SHOTS = None, None, None

LATENCY = '''.param word, R10, pointer sm
  SMVAGA.M1 R10, AR8 | SMOVI24 1, R2
  SNOP 1
  SLDW *AR8, R2
  SNOP 5
  SSTW R2, *+AR8[1]
  SSTW R2, *+AR8[2]
  SBR R63
  SNOP 6
'''
LATENCY_SPEC = '''program: latency.s
memory:
  - {space: sm, address: 0, fill: 0x3f, bytes: 8}
'''
GEMM_SPEC = '''program: gemm.s
entry: write_only
registers: {R10: 0, R12: 0, R14: 0x10000, R16: 8, R18: 32, R20: 512, R22: 512}
memory:
  - {space: sm, address: 0, file: x.bin}
  - {space: am, address: 0, file: w.bin}
'''
UNUSED = '''.param word, R10, pointer sm
  SMOVI24 1, R2 | SMVAGA.M1 R10, AR8
  SMOVI24 2, R2
  SNOP 1
  SSTW R2, *AR8
  SBR R63
  SNOP 6
'''
RUNAWAY = '''  SMOVI24 0xFFF0, R2
  SMVAGA.M1 R2, AR8 | SMOVI24 1, R1
  SNOP 1
loop:
  SSTW R1, *AR8++[1] | SBR loop
  SNOP 6
'''


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        files = {'latency.s': LATENCY, 'latency.yaml': LATENCY_SPEC, 'gemm.yaml': GEMM_SPEC,
                 'gemm.s': (ROOT / 'kernels/gemm/gemm_f32_6x128.s').read_text(),
                 'axpy.s': (ROOT / 'scenarios/examples/axpy.s').read_text().replace('SNOP 8', 'SNOP 7'),
                 'unused.s': UNUSED, 'runaway.s': RUNAWAY, 'runaway.yaml': 'program: runaway.s\n',
                 'naive.s': (ROOT / 'kernels/naive/gemm_naive.s').read_text()}
        for name, text in files.items():
            (cls.folder / name).write_text(text)
        # X is 6 x 8 with X[r][k] = r + 1, W is 8 x 128 of 0.5: Y[r][c] = 4 (r + 1).
        (cls.folder / 'x.bin').write_bytes(b''.join(struct.pack('<f', row + 1) for row in range(6) for _ in range(8)))
        (cls.folder / 'w.bin').write_bytes(struct.pack('<f', 0.5) * (8 * 128))
        cls.browser = webdriver.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.scratch.cleanup()

    def show(self, *arguments, exits=0):
        """Makes a page and opens it, as from a file manager; gives what the command printed."""
        page = self.folder / f'{self.id().rsplit(".", 1)[1]}.html'
        made = subprocess.run([MTSIM, 'schedule', *arguments, '--html', page.name], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, 'MTSIM_MEMO': 'off'})
        self.assertEqual(made.returncode, exits, made.stderr)
        self.browser.open(page.as_uri())
        self.assertEqual(self.browser.run('return document.documentElement.dataset.ready'), 'yes')
        self.assertEqual(self.browser.errors(), [])
        return made.stdout

    def cut_off(self):
        """What of the figures cannot be seen: tables wider than their place, and texts wider than their cells."""
        return self.browser.run('''
            const wide = [...document.querySelectorAll(".figure:not(.scrolls)")].filter(f => f.firstChild.getBoundingClientRect().width > f.clientWidth + 1)
                .map(f => `table ${f.firstChild.getBoundingClientRect().width} in ${f.clientWidth}`);
            const cut = [...document.querySelectorAll("td.op .name, td.op .args:not([title]), thead th:not(.unused)")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent);
            const outside = [...document.querySelectorAll("section.schedule")].filter(s => s.getBoundingClientRect().right > innerWidth).map(s => s.ariaLabel);
            return [...wide, ...cut, ...outside];''')

    def tearDown(self):
        self.assertEqual(self.browser.errors(), [])
        self.browser.resize(1280)
        if SHOTS:
            self.browser.screenshot(SHOTS / f'{self.id().rsplit(".", 1)[1]}.png')

    def packet(self):
        """The packet about to issue."""
        return self.browser.run('return document.querySelector("tr.now")?.dataset.packet ?? null')

    def state(self):
        """Everything the panel shows of a moment of the run."""
        return [self.browser.text(f'#{part}') for part in ('inspector', 'flight', 'values', 'memory', 'register-map')] + [self.packet()]

    def focused(self):
        return self.browser.run('return document.activeElement?.dataset.cell ?? null')

    def test_table_1_has_sixteen_cycles_and_its_bounds(self):
        browser = self.browser
        self.show('gemm.s', 'loop')
        self.assertEqual(browser.count('.grid thead th'), 13)  # cycle, eleven units, live
        rows = browser.run('return [...document.querySelectorAll("tbody.loop tr[data-packet] th.cycle")].map(e => e.textContent)')
        self.assertEqual(rows, [str(cycle) for cycle in range(16)])
        self.assertEqual(browser.count('tbody.loop td.op'), 92)
        self.assertEqual(browser.run('return [...document.querySelectorAll("tbody")].filter(b => b.dataset.part).map(b => b.className)'),
                         ['prologue', 'loop', 'epilogue', 'prologue'])
        card = browser.text('.loop-card')
        for fact in ('Initiation interval16 cycles', 'Resource bound16 VMAC', 'Recurrence bound12', 'It cannot be shorter', 'VMAC: 48 instructions, 3 a cycle'):
            self.assertIn(fact, card)
        self.assertEqual(browser.count('.hazard, .hazard-row, .findings'), 0)
        # It opens at the part that was asked for.
        self.assertGreater(browser.run('return window.scrollY'), 100)

    def test_no_table_is_cut_off_at_any_width(self):
        for arguments in (('gemm.s',), ('gemm.s', '--run', 'gemm.yaml'), ('gemm.s', '--reschedule'), ('axpy.s',), ('gemm.s', '--compare', 'axpy.s'),
                          ('naive.s', '--reschedule'), (str(ROOT / 'kernels/softmax/softmax.s'),)):
            self.show(*arguments)
            for width in (1280, 1400, 1920):
                self.browser.resize(width)
                self.assertLessEqual(self.browser.run('return document.documentElement.scrollWidth'), width, arguments)
                self.assertEqual(self.browser.count('.figure.scrolls'), 0, (arguments, width))
                self.assertEqual(self.cut_off(), [], (arguments, width))

    def test_a_window_too_narrow_for_the_table_scrolls_it_with_cycles_in_view(self):
        browser = self.browser
        self.show('gemm.s')
        browser.resize(700)
        self.assertEqual(browser.count('.figure.scrolls'), 1)
        self.assertEqual(self.cut_off(), [])
        last = browser.run('return Math.max(...SCHEDULES[0].cells.keys())')
        browser.run('document.querySelector(`[data-cell="${arguments[0]}"]`).focus()', last)
        browser.press('k')
        cell = browser.run('const b = document.activeElement.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]')
        self.assertGreaterEqual(cell[0], 0)
        self.assertLessEqual(cell[1], 700)
        self.assertLess(browser.run('return document.querySelector("tr.pointed-row th.cycle").getBoundingClientRect().left'), 40)

    def test_a_mouse_over_an_instruction_draws_its_arrows_and_live_registers(self):
        browser = self.browser
        self.show('gemm.s')
        self.assertEqual(browser.count('svg .arrow'), 0)
        # SBALE2 R32 of the loop: SLDH seven cycles before, SVBCAST the cycle behind.
        cell = browser.run('''return SCHEDULES[0].cells.findIndex(c => c.operation === "SBALE2" && c.packet === 25)''')
        browser.hover(f'[data-cell="{cell}"]')
        self.assertEqual(browser.run('return [...document.querySelectorAll(".arrow-label")].map(e => e.textContent).sort()'), ['R32 +1', 'R32 +7'])
        self.assertEqual(browser.count('.op.producer'), 1)
        self.assertEqual(browser.count('.op.consumer'), 1)
        self.assertGreaterEqual(browser.count('svg .arrow'), 4)
        text = browser.text('#inspector')
        self.assertIn('reads R32 of SLDH in cycle 2 of loop ‘loop’: there after 7, read after 7, just in time', text)
        self.assertIn('writes R32, readable 1 cycle later; read by 1 instruction, first after 1', text)
        live = browser.run('return [...document.querySelectorAll("#register-map .live")].map(e => e.dataset.register)')
        self.assertIn('R32', live)
        self.assertIn('VR8', live)
        self.assertNotIn('VR0', live)  # its last reader issued in cycle 3, the next SVBCAST lands in 14
        browser.hover('#title')
        self.assertEqual(browser.count('svg .arrow'), 0)

    def test_an_arrow_into_the_next_pass_is_dashed(self):
        browser = self.browser
        self.show('gemm.s')
        cell = browser.run('return SCHEDULES[0].cells.findIndex(c => c.operation === "SVBCAST" && c.packet === 31)')
        browser.hover(f'[data-cell="{cell}"]')
        self.assertGreaterEqual(browser.count('svg .arrow.wraps'), 2)
        self.assertEqual(browser.run('return getComputedStyle(document.querySelector(".arrow.wraps")).strokeDasharray').replace('px', ''), '5, 3')

    def test_the_keyboard_reaches_everything(self):
        browser = self.browser
        self.show('gemm.s')
        browser.run('document.getElementById("schedules").focus()')
        for _ in range(20):
            if self.focused() is not None:
                break
            browser.press('Tab')
        self.assertEqual(self.focused(), '0')  # the table is one stop
        self.assertGreater(browser.count('svg .arrow'), 0)
        outline = browser.run('const s = getComputedStyle(document.activeElement); return [s.outlineStyle, parseFloat(s.outlineWidth)]')
        self.assertEqual(outline[0], 'solid')
        self.assertGreaterEqual(outline[1], 2)
        label = browser.run('return document.activeElement.getAttribute("aria-label")')
        self.assertIn('SMAC1, cycle 0 of the prologue', label)
        browser.press('Right')
        self.assertEqual(self.focused(), '1')
        browser.press('Down', 'Up')
        self.assertEqual(self.focused(), '1')
        browser.press('j')
        where = browser.run('return SCHEDULES[0].cells[arguments[0]].packet', self.focused())
        self.assertEqual(where, 1)
        browser.press('k', 'Left')
        self.assertEqual(self.focused(), '0')
        browser.press('?')
        self.assertTrue(browser.run('return document.getElementById("help").open'))
        browser.press('Escape')
        self.assertFalse(browser.run('return document.getElementById("help").open'))
        dark = browser.run('return document.documentElement.dataset.theme')
        browser.press('t')
        self.assertNotEqual(browser.run('return document.documentElement.dataset.theme'), dark)
        browser.press('a')
        self.assertGreater(browser.count('svg .arrow.all'), 20)
        browser.press('a', 'Escape')
        self.assertEqual(browser.count('svg .arrow'), 0)
        browser.press(']')
        self.assertIn('--run SPEC.yaml', browser.text('#announcer'))
        unnamed = browser.run('return [...document.querySelectorAll("button, select, input")].filter(e => !(e.textContent.trim() || e.getAttribute("aria-label"))).length')
        self.assertEqual(unnamed, 0)

    def test_a_hazard_is_red_with_its_sentence(self):
        browser = self.browser
        self.show('axpy.s')
        self.assertEqual(browser.count('.op.hazard'), 1)
        sentence = 'VFMULAS32 (line 17) reads the old VR1: the result of VLDW (line 15) lands 1 cycle later'
        self.assertIn(sentence, browser.text('.hazard-row'))
        self.assertIn(sentence, browser.text('.findings'))
        for theme in ('light', 'dark'):
            browser.run('document.documentElement.dataset.theme = arguments[0]', theme)
            red, green, blue = (int(part) for part in browser.run('return getComputedStyle(document.querySelector(".op.hazard")).outlineColor.match(/\\d+/g).slice(0, 3)'))
            self.assertGreater(red, 1.5 * max(green, blue), theme)
        browser.press('n')
        self.assertEqual(browser.run('return document.activeElement.classList.contains("hazard")'), True)
        self.assertIn('Hazard: ' + sentence, browser.run('return document.activeElement.getAttribute("aria-label")'))
        self.assertEqual(browser.run('return getComputedStyle(document.querySelector("#inspector .hazard")).fontWeight'), '600')

    def test_stepping_forward_and_back_gives_the_same_values(self):
        browser = self.browser
        self.show('gemm.s', '--run', 'gemm.yaml')
        states = [self.state()]
        for _ in range(40):
            browser.press(']')
            states.append(self.state())
        self.assertEqual(len({state[5] for state in states}), 32)  # 16 packets of the prologue, 16 of the loop, twice round
        for before, after in zip(states, states[1:]):
            self.assertNotEqual(before, after)
        for expected in reversed(states[:-1]):
            browser.press('[')
            self.assertEqual(self.state(), expected)

    def test_the_values_of_a_run_are_those_the_kernel_computes(self):
        browser = self.browser
        self.show('gemm.s', '--run', 'gemm.yaml')
        browser.click('[data-action="end"]')
        self.assertIn('done in 86 cycles', browser.text('#run-bar output'))
        last = browser.run('const r = page.run.replay; return r.areas.map(a => [a.space, a.first, a.last])')
        self.assertIn(['am', 0x10000, 0x10000 + 6 * 512], last)
        sums = browser.run('''const s = page.run.replay.state; return [0, 1, 2, 3, 4, 5].map(row => {
            const bits = [0, 1, 2, 3].map(i => s.byte("am", 0x10000 + 512 * row + 508 + i));
            return new DataView(new Uint8Array(bits).buffer).getFloat32(0, true); });''')
        self.assertEqual(sums, [4, 8, 12, 16, 20, 24])
        self.assertIn('24', browser.text('#memory'))  # it follows the stores
        browser.click('[data-action="start"]')
        self.assertEqual(self.packet(), '54')
        self.assertNotIn('24', browser.text('#memory table'))

    def test_results_in_flight_and_old_values_are_on_view(self):
        browser = self.browser
        self.show('latency.s', '--run', 'latency.yaml')
        browser.press(']', ']', ']')  # behind SLDW
        self.assertIn('1 result in flight', browser.text('#flight'))
        self.assertIn('R2+6', browser.text('#flight table'))
        browser.press(']')
        self.assertIn('⚠ reads the old R2: the result of SLDW lands 1 cycle later', browser.text('#inspector'))
        value = 'return document.querySelector(\'#values [data-register="R2"]\').textContent'
        self.assertIn('R21', browser.run(value))
        browser.press(']')
        self.assertIn('(0.7471 0.7471)', browser.run(value))  # landed: FP32 is the first view
        self.assertTrue(browser.run('return document.querySelector(\'#values [data-register="R2"]\').classList.contains("changed")'))
        for key, name, text in (('2', 'f64', '(4.77e-4)'), ('3', 'f16', '(1.812 1.812 1.812 1.812)'), ('4', 'hex', '0x3f3f3f3f3f3f3f3f')):
            browser.press(key)
            self.assertIn(text, browser.run(value))
            self.assertEqual(browser.run('return document.querySelector(".views [aria-pressed=true]").dataset.view'), name)
        self.assertIn('0000000000000001', browser.text('#memory'))  # what SSTW stored
        browser.press('[')
        self.assertNotIn('0000000000000001', browser.text('#memory table'))
        self.assertIn('R21', browser.run(value))

    def test_a_cut_run_says_so(self):
        self.show('gemm.s', '--run', 'gemm.yaml', '--run-cycles', '20')
        self.browser.press('}', '}')
        self.assertIn('the recording ends here; the run goes on to cycle 86', self.browser.text('#run-bar output'))

    def test_a_run_that_faults_shows_where(self):
        browser = self.browser
        printed = self.show('runaway.s', '--run', 'runaway.yaml', exits=1)
        self.assertIn('fault: runaway.s:5:3: core 0, cycle 17, pc 3: address fault', printed)
        box = browser.text('.fault')
        for fact in ('The run was stopped by a fault in cycle 17', 'packet 3, cycle 0 of loop ‘loop’', 'runaway.s:5:3', 'SSTW', 'reaches outside the memory'):
            self.assertIn(fact, box)
        browser.click('.fault button')
        self.assertEqual(self.packet(), '3')
        self.assertEqual(browser.count('tr.now.faulted'), 1)
        self.assertIn('stopped by a fault in cycle 17', browser.text('#run-bar output'))
        self.assertIn('reaches outside the memory', browser.text('#inspector'))
        browser.press('[')
        self.assertEqual(self.packet(), '3')  # about to issue
        self.assertEqual(browser.count('tr.now.faulted'), 0)
        self.show('runaway.s', '--run', 'runaway.yaml', '--run-cycles', '10', exits=1)
        self.assertIn('whose recording ends in cycle', browser.text('.fault'))

    def test_a_result_that_nobody_reads_is_a_warning_and_no_hazard(self):
        browser = self.browser
        printed = self.show('unused.s')
        self.assertIn('0 hazards, 1 warning', printed)
        self.assertEqual(browser.count('.op.hazard, .hazard-row'), 0)
        self.assertEqual(browser.count('.op.warned'), 1)
        self.assertIn('No hazards found', browser.text('main'))
        self.assertIn('line 2: the result of SMOVI24 in R2 is overwritten before anything reads it', browser.text('.warnings'))
        browser.click('.warnings button')
        self.assertIn('overwritten before anything reads it', browser.text('#inspector'))

    def test_two_schedules_stand_side_by_side(self):
        browser = self.browser
        self.show('naive.s', '--reschedule')
        self.assertEqual(browser.count('section.schedule'), 2)
        boxes = browser.run('return [...document.querySelectorAll("section.schedule")].map(s => s.getBoundingClientRect()).map(b => [b.left, b.right, b.top])')
        self.assertEqual(boxes[0][2], boxes[1][2])
        self.assertLess(boxes[0][1], boxes[1][0])
        cards = browser.run('return [...document.querySelectorAll("section.schedule")].map(s => s.querySelector(".loop-card").textContent)')
        self.assertIn('Initiation interval19', cards[0])
        self.assertIn('The scheduler finds 7, 12 cycles less', cards[0])
        self.assertIn('Initiation interval7', cards[1])
        browser.press('s')
        boxes = browser.run('return [...document.querySelectorAll("section.schedule")].map(s => s.getBoundingClientRect()).map(b => [b.top, b.bottom])')
        self.assertLess(boxes[0][1], boxes[1][0])
        browser.press('s')
        cell = browser.run('return SCHEDULES[1].cells.findIndex(c => c.operation === "SFMULAS32")')
        browser.hover(f'section[data-schedule="1"] [data-cell="{cell}"]')
        self.assertGreater(browser.count('section[data-schedule="1"] svg .arrow'), 0)
        self.assertEqual(browser.count('section[data-schedule="0"] svg .arrow'), 0)
        self.show('naive.s', '--compare', 'axpy.s')
        browser.press('n')
        self.assertEqual(browser.run('return document.activeElement.closest("section").dataset.schedule'), '1')  # the first has no hazard
        self.assertTrue(browser.run('return document.activeElement.classList.contains("hazard")'))

    def test_print_leaves_the_panel_out_and_has_few_pages(self):
        browser = self.browser
        self.show('gemm.s', '--run', 'gemm.yaml')
        pdf = browser.print_pdf()
        if SHOTS:
            (SHOTS / 'print.pdf').write_bytes(pdf)
        pages = pdf.count(b'/Type /Page\n') + pdf.count(b'/Type /Page ') + pdf.count(b'/Type /Page/')
        self.assertTrue(2 <= pages <= 4, pages)
        rules = browser.run('''return [...document.styleSheets].flatMap(s => [...s.cssRules]).filter(r => r.media?.mediaText === "print")
            .flatMap(r => [...r.cssRules]).map(r => r.cssText).join(" ")''')
        self.assertIn('#dock', rules)

    def test_a_large_program_stays_quick(self):
        browser = self.browser
        self.show(str(ROOT / 'kernels/softmax/softmax.s'))
        self.assertGreater(browser.count('tr[data-packet]'), 500)
        took = browser.run('return performance.timing.domComplete - performance.timing.domLoading')
        self.assertLess(took, 10000)
        hover = browser.run('''const cells = [...document.querySelectorAll("td.op")].slice(0, 200), start = performance.now();
            for (const cell of cells) page.point(page.grids[0], Number(cell.dataset.cell));
            return (performance.now() - start) / cells.length;''')
        self.assertLess(hover, 100)  # milliseconds each, on a slow host


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    missing = webdriver.missing_programs()
    if missing:
        print(f'skipped: not installed: {", ".join(missing)}')
        sys.exit(SKIPPED)
    MTSIM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
    SHOTS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    unittest.main(argv=[sys.argv[0], '-v'])
