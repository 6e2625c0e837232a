"""Charts as functions of a table of results, and pages of one file that need no network."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from lacuna.exports import exported
from lacuna.validation import MissingExtraError

if not all(find_spec(module) for module in ("altair", "vl_convert", "markupsafe")):
    raise MissingExtraError("charts and pages need an extra: pip install 'lacuna[report]'")

if TYPE_CHECKING:
    from lacuna.files import write_whole as write_whole
    from lacuna.quantities import counted as counted
    from lacuna.quantities import duration as duration
    from lacuna.quantities import number_text as number_text
    from lacuna.report.axes import Floor as Floor
    from lacuna.report.axes import Panel as Panel
    from lacuna.report.chart_files import FORMATS as FORMATS
    from lacuna.report.chart_files import spec_of as spec_of
    from lacuna.report.chart_files import write_files as write_files
    from lacuna.report.findings import Lead as Lead
    from lacuna.report.findings import count_leads as count_leads
    from lacuna.report.findings import on_lead as on_lead
    from lacuna.report.forest import Estimate as Estimate
    from lacuna.report.forest import Part as Part
    from lacuna.report.forest import bar as bar
    from lacuna.report.forest import forest_plot as forest_plot
    from lacuna.report.forest import reach as reach
    from lacuna.report.html_tables import Cell as Cell
    from lacuna.report.html_tables import Row as Row
    from lacuna.report.html_tables import Text as Text
    from lacuna.report.html_tables import bounds_text as bounds_text
    from lacuna.report.html_tables import cards as cards
    from lacuna.report.html_tables import interval_cell as interval_cell
    from lacuna.report.html_tables import joined as joined
    from lacuna.report.html_tables import short_number as short_number
    from lacuna.report.html_tables import table as table
    from lacuna.report.page import Figure as Figure
    from lacuna.report.page import Page as Page
    from lacuna.report.page import Section as Section
    from lacuna.report.page import Switch as Switch
    from lacuna.report.page import details as details
    from lacuna.report.page import facts as facts
    from lacuna.report.page import numbers as numbers
    from lacuna.report.page import paragraphs as paragraphs
    from lacuna.report.page import when as when
    from lacuna.report.panels import chart_of as chart_of
    from lacuna.report.panels import encodings as encodings
    from lacuna.report.panels import framed as framed
    from lacuna.report.panels import haloed as haloed
    from lacuna.report.panels import laid_out as laid_out
    from lacuna.report.panels import print_config as print_config
    from lacuna.report.panels import shown_rows as shown_rows
    from lacuna.report.player import player_element as player_element
    from lacuna.report.player import player_page as player_page
    from lacuna.report.player import recording_json as recording_json
    from lacuna.report.recording import Recording as Recording
    from lacuna.report.recording import Stage as Stage
    from lacuna.report.recording import record as record
    from lacuna.report.still import still_picture as still_picture
    from lacuna.report.styles import BLACK as BLACK
    from lacuna.report.styles import BLUE as BLUE
    from lacuna.report.styles import BROWN as BROWN
    from lacuna.report.styles import DARK as DARK
    from lacuna.report.styles import DASHED as DASHED
    from lacuna.report.styles import DOTTED as DOTTED
    from lacuna.report.styles import GREEN as GREEN
    from lacuna.report.styles import GREY as GREY
    from lacuna.report.styles import INK as INK
    from lacuna.report.styles import ORANGE as ORANGE
    from lacuna.report.styles import PURPLE as PURPLE
    from lacuna.report.styles import SKY as SKY
    from lacuna.report.styles import SOLID as SOLID
    from lacuna.report.styles import VERMILION as VERMILION
    from lacuna.report.styles import Style as Style
    from lacuna.report.styles import in_dark as in_dark
else:
    __all__, __getattr__, __dir__ = exported(__name__)
