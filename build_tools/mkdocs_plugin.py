"""The adapter: hands the generated pages to MkDocs, and the faults to whoever runs it."""

from pathlib import Path

from mkdocs.config import config_options
from mkdocs.config.base import Config as PluginConfig
from mkdocs.exceptions import Abort
from mkdocs.plugins import BasePlugin, get_plugin_logger
from mkdocs.structure.files import File

from build_tools.config import read_config
from build_tools.libraries import folder
from build_tools.site import make
from build_tools.write import write

log = get_plugin_logger("content")


class ContentOptions(PluginConfig):
    cache = config_options.Type(bool, default=True)


class ContentPlugin(BasePlugin[ContentOptions]):
    """`serve` shows faults on the page they concern; any other command stops at them."""

    def on_startup(self, *, command, dirty):
        self.serving = command == "serve"

    def on_config(self, config):
        self.project = read_config(Path(config.config_file_path).parent)
        config.watch += [
            str(self.project.root / "content"),
            *(str(folder(name)) for name in self.project.libraries),
        ]
        return config

    def on_files(self, files, *, config):
        result = make(self.project, use_cache=self.config.cache)
        for fault in result.faults:
            log.error(str(fault))
        if result.faults and not self.serving:
            raise Abort(f"{len(result.faults)} faults in the content; nothing was written.")
        write(result.pages, self.project.pages)
        for page in result.pages:
            files.append(File.generated(config, page.uri, abs_src_path=str(self.project.pages / page.uri)))
        return files
