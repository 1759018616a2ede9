from .charts import Chart as Chart
from .charts import Contours as Contours
from .charts import Series as Series
from .figures import check_figure_target as check_figure_target
from .figures import save_figure as save_figure
from .result import Content as Content
from .result import Result as Result
from .result import ShownTable as ShownTable
