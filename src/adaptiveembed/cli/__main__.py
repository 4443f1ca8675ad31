"""``python -m adaptiveembed.cli`` does what the command ``adaptiveembed`` does."""

import sys

from adaptiveembed.cli.program import main

sys.exit(main())
