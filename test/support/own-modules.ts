/** What the directory below answers. */
export const answerOfOwnModules = `{"own": ["a", "b", "c", 4], "id": 36}`;

/** A directory of Python whose files have names of modules of the standard library, and a test of it. */
export const ownModules = (runtime: string): Record<string, string> => ({
  "spry.yaml": `name: own-modules\nruntime: ${runtime}\n`,
  "requirements.txt": "idna\n",
  "handler.py":
    "import logging, queue, tempfile, uuid\nfrom types import Order\nfrom json import word\nimport idna\n" +
    "def main(event, context):\n    return {'own': [word, queue.word, logging.word, Order.number], 'id': len(str(uuid.uuid4()))}\n",
  "json.py": "word = 'a'\n",
  "queue.py": "word = 'b'\n",
  "logging/__init__.py": "from .more import word\n",
  "logging/more.py": "word = 'c'\n",
  "types.py": "class Order:\n    number = 4\n",
  "test_handler.py":
    "import os, unittest, urllib.request\nfrom json import word\nfrom types import Order\nimport idna\nclass Case(unittest.TestCase):\n    def test(self):\n" +
    '        body = urllib.request.urlopen(os.environ["SPRY_URL"]).read().decode()\n' +
    "        self.assertEqual(body, '" +
    `${answerOfOwnModules}')\n        self.assertEqual([word, Order.number], ['a', 4])\n`,
});
