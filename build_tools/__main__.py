"""The command line: python -m build_tools check | build | site | serve."""

import argparse
import sys
from pathlib import Path

from build_tools.config import ConfigError, read_config
from build_tools.errors import ContentError
from build_tools.libraries import LibraryError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m build_tools", description="From content files to pages.")
    parser.add_argument(
        "command",
        choices=("check", "build", "site", "serve"),
        help="check: find all faults, write nothing; build: also write build/pages; site: also build site/ with "
        "MkDocs; serve: show the site on this machine and follow every edit",
    )
    parser.add_argument("--no-cache", action="store_true", help="compute every number and figure anew")
    parser.add_argument(
        "--root", type=Path, default=Path(), help="the folder of pyproject.toml (default: here)"
    )
    options = parser.parse_args(arguments)
    try:
        config = read_config(options.root.resolve())
        if options.command == "site":
            from build_tools.publish import publish

            page = publish(config, use_cache=not options.no_cache)
            print(f"Open {page} in a browser." if page else "The site was not built; site/ is as it was.")
            return 0 if page else 1
        if options.command == "serve":
            from build_tools.publish import serve

            serve(config)
            return 0
        from build_tools import site

        result = getattr(site, options.command)(config, use_cache=not options.no_cache)
    except ContentError as error:
        print(error, file=sys.stderr)
        count = len(error.faults)
        print(f"{count} {'fault' if count == 1 else 'faults'}; nothing was written.", file=sys.stderr)
        return 1
    except (ConfigError, LibraryError) as error:
        print(error, file=sys.stderr)
        return 2
    print(", ".join(f"{count} {what}" for what, count in result.counts().items()) + ": all hold.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
