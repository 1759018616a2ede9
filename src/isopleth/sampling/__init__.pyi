from .chains import Chains as Chains
from .diagnostics import effective_sample_size as effective_sample_size
from .diagnostics import r_hat as r_hat
from .diagnostics import tail_effective_sample_size as tail_effective_sample_size
from .run import sample as sample
from .target import Target as Target
