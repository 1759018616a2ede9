from .charts import Chart as Chart
from .charts import Content as Content
from .charts import Contours as Contours
from .charts import Series as Series
from .charts import ShownTable as ShownTable
from .figures import check_figure_target as check_figure_target
from .figures import save_figure as save_figure
from .result import Result as Result
