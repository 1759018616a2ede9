from .chains import Chains as Chains
from .chains import effective_sample_size as effective_sample_size
from .chains import r_hat as r_hat
from .chains import tail_effective_sample_size as tail_effective_sample_size
from .run import sample as sample
from .target import Target as Target
