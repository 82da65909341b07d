# SPDX-License-Identifier: Apache-2.0
"""As much of the W3C WebDriver protocol as the browser tests need, on the standard library: chromedriver drives Chromium."""
import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
KEYS = {'Tab': '\ue004', 'Escape': '\ue00c', 'Left': '\ue012', 'Up': '\ue013', 'Right': '\ue014', 'Down': '\ue015'}


def missing_programs():
    """What has to be installed before a browser can be driven."""
    return [name for name in ('chromium', 'chromedriver') if shutil.which(name) is None]


def _free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


class Browser:
    """with Browser() as browser: browser.open('file:///...')"""

    def __init__(self, width=1280, height=900):
        self._port = _free_port()
        self._driver = subprocess.Popen(['chromedriver', f'--port={self._port}'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._await_driver()
            # No sandbox: tests run as root in containers, on pages of our own. No network: a page must not need one.
            arguments = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
                         f'--window-size={width},{height}', '--host-resolver-rules=MAP * ~NOTFOUND', '--disable-background-networking']
            session = self._call('POST', '/session', {'capabilities': {'alwaysMatch': {
                'browserName': 'chrome', 'goog:loggingPrefs': {'browser': 'ALL'},
                'goog:chromeOptions': {'binary': shutil.which('chromium'), 'args': arguments}}}})
            self._session = '/session/' + session['sessionId']
        except BaseException:
            self._driver.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            self._call('DELETE', self._session)
        finally:
            self._driver.terminate()
            self._driver.wait(timeout=20)

    def _await_driver(self):
        end = time.time() + 60
        while True:
            try:
                if self._call('GET', '/status')['ready']:
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            if time.time() > end or self._driver.poll() is not None:
                raise RuntimeError('chromedriver does not start')
            time.sleep(0.1)

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f'http://127.0.0.1:{self._port}{path}', data, {'Content-Type': 'application/json'}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            raise RuntimeError(f'{method} {path}: {error.read().decode()[:500]}') from None

    def _do(self, method, path, body=None):
        return self._call(method, self._session + path, body)

    def open(self, url):
        self._do('POST', '/url', {'url': url})

    def resize(self, width, height=900):
        """Comes back when the page has been laid out anew."""
        self._do('POST', '/window/rect', {'width': width, 'height': height})
        end = time.time() + 20
        while self.run('return innerWidth') != width:
            if time.time() > end:
                raise RuntimeError(f'the window does not become {width} pixels wide')
            time.sleep(0.02)
        self.run('return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')

    def run(self, script, *arguments):
        """The value of a JavaScript function body."""
        return self._do('POST', '/execute/sync', {'script': script, 'args': list(arguments)})

    def all(self, selector):
        return [found[ELEMENT] for found in self._do('POST', '/elements', {'using': 'css selector', 'value': selector})]

    def one(self, selector):
        found = self.all(selector)
        if len(found) != 1:
            raise AssertionError(f'{len(found)} elements match {selector}, expected one')
        return found[0]

    def count(self, selector):
        return self.run('return document.querySelectorAll(arguments[0]).length', selector)

    def text(self, selector):
        return self.run('return document.querySelector(arguments[0])?.textContent ?? null', selector)

    def click(self, selector):
        self._do('POST', f'/element/{self.one(selector)}/click', {})

    def hover(self, selector):
        element = self.one(selector)
        self.run('arguments[0].scrollIntoView({block: "center"})', {ELEMENT: element})
        self._do('POST', '/actions', {'actions': [{'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'}, 'actions': [
            {'type': 'pointerMove', 'duration': 0, 'origin': {ELEMENT: element}, 'x': 0, 'y': 0}]}]})

    def press(self, *keys):
        """Real key strokes, one after the other, to whatever has the focus."""
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{'type': 'keyDown', 'value': value}, {'type': 'keyUp', 'value': value}]
        self._do('POST', '/actions', {'actions': [{'type': 'key', 'id': 'keyboard', 'actions': actions}]})

    def errors(self):
        """What the page complained about in the console."""
        return [entry['message'] for entry in self._do('POST', '/se/log', {'type': 'browser'}) if entry['level'] == 'SEVERE']

    def screenshot(self, path):
        with open(path, 'wb') as out:
            out.write(base64.b64decode(self._do('GET', '/screenshot')))

    def print_pdf(self):
        """The page as it would be printed."""
        return base64.b64decode(self._do('POST', '/print', {'page': {'width': 29.7, 'height': 21.0}, 'background': True}))
