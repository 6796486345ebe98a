"""Explains the most common exceptions of tensor code in plain words, from facts only. Pure."""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Callable, Iterator, Mapping

# How much of a text to look at: strangers write it.
_LONGEST = 600


def plain_words(message: str, code: str = "", part: str = "") -> str:
    """An exception's message in plain words, "" if the message is not a known one.

    `code` is the line that raised it, `part` the part of it that did, if that is not all.
    """
    message, code = message[:_LONGEST], code[:_LONGEST]
    for beginning, meaning in _LINES:
        if re.match(beginning, code):
            return meaning
    for pattern, words in _TABLE:
        found = re.search(pattern, message)
        if found is not None:
            make = _MADE.get(words) or _SHARED.get(words, words).format
            text = make(*found.groups())
            for case, more in _BY_CODE:
                if re.match(case, f"{words} {code}"):
                    text = (text if more.startswith(";") else "") + more.format(*found.groups())
            own = _CALL.fullmatch(part or code)
            if words == "<no_function>" and own and hasattr(builtins, own[1]):
                text = f"{own[1]} is Python's own, and your code uses that name for something else"
                text += ": rename yours; `import *` may bring one, too"
            if words == "<unset>" and not re.search(rf"\bself\.{found[1]}\b", code):
                return ""
            if words == "<called>" and code:
                return _about_self(message, code)
            return text
    return ""


def sizes_at_odds(words: str) -> tuple[int, int] | None:
    """The two sizes that do not fit, as the words for an error have them; None for other errors."""
    found = next(filter(None, (re.match(said, words) for said in _AT_ODDS)), None)
    return (int(found[1]), int(found[2])) if found else None


_AT_ODDS = (
    r"along axis \d+ (?:one|the) t\w+ has (?:size )?(\d+) and the (?:other|tensor) (\d+):",
    r"the first tensor has rows of (\d+) numbers, the second expects rows of (\d+):",
    r"the first tensor has rows of (\d+) numbers, so .* have size \d+, and it has (\d+)",
    r"the tensors are joined along axis \d+; along another, one has (\d+) and the other (\d+),",
    r"these sizes hold (\d+) numbers, and the tensor has (\d+)",
    r"the tensor has (\d+) numbers, and (\d+) does not divide that",
    r"\w is an axis of (\d+) in tensor \d+ and of (\d+) in one before it:",
)
_CALL = re.compile(r"(\w+)\((?:[^()]|\([^()]*\))*\)")
_KIND = "((?:Lazy)?Linear|Dropout|Softmax)"  # of a layer


def _products(wanted: str, inner: str, came: str, rows: str) -> str:
    if inner != rows:
        return (
            f"the first tensor has rows of {inner} numbers, so the second-to-last axis of the "
            f"second must have size {inner}, and it has {rows}"
        )
    return (
        f"the first tensor is {wanted} matrices, the second {came}: compare the axes before the "
        "last two"
    )


def _reshaped(shape: str, size: str) -> str:
    sizes = [int(each) for each in re.findall(r"-?\d+", shape)]
    if -1 in sizes:
        known = math.prod(each for each in sizes if each != -1)
        return f"the tensor has {size} numbers, and {known} does not divide that"
    return f"these sizes hold {math.prod(sizes)} numbers, and the tensor has {size}"


def _about_self(message: str, code: str) -> str:
    """How the call of a method counts its object, if that may be why the values do not fit."""
    found = re.match(r"(\w+)\.(\w+)\(\) (takes|missing 1 )", message)
    if found and "super().__init__(" in code:
        return "the class that yours extends takes fewer values: nn.Module takes none"
    if found and found[3] == "takes" and re.search(rf"\bself\.{found[2]}\(", code):
        return f"self.{found[2]}(...) passes self, too, before the values in the parentheses"
    if found and found[3] != "takes" and re.search(rf"\b{found[1]}\.{found[2]}\(", code):
        return f"called on the class, {found[2]} gets no self: only its values in the parentheses"
    return ""


def _not_a_tensor(function: str, kind: str) -> str:
    if kind == "NoneType":
        return _SHARED["<none>"]
    if re.fullmatch(_KIND, kind):
        return _SHARED["<a_layer>"].format(kind)
    if kind.startswith("torch.return_types."):
        return _SHARED["<pair>"].format(kind.rpartition(".")[2])
    of_numbers = ". For a number, use math.sqrt" if function == "sqrt" else ""
    return f"torch.{function} takes a tensor, and this is a plain {kind}{of_numbers}"


def _dtypes(*kinds: str | None) -> str:
    one, other = filter(None, kinds)
    words = f"{one} and {other} meet here: both need one dtype"
    if "float" in (one.lower(), other.lower()):
        words += "; .float() gives Float, and so does a new tensor of floats without dtype="
    return words


def _parts(many: str, wanted: str, got: str) -> str:
    count = "more" if many == "too many" else f"only {got}"
    return f"{wanted} names are to take the values, and there are {count}"


def _axis(lowest: str, highest: str, axis: str) -> str:
    count = int(highest) + 1
    if count == 1:
        return f"the tensor has one axis, 0 or -1, and no axis {axis}"
    return f"the tensor has {count} axes, 0 to {highest} or {lowest} to -1, and no axis {axis}"


def _letters(letters: str, axes: str, place: str) -> str:
    return f"the equation names {letters} axes for tensor {int(place) + 1}, which has {axes}"


def _letter(letter: str, size: str, place: str, seen: str) -> str:
    return (
        f"{letter} is an axis of {size} in tensor {int(place) + 1} and of {seen} in one before it: "
        "each tensor's letters name its axes in their order"
    )


# Words that are made of what a pattern finds.
_MADE: Mapping[str, Callable[..., str]] = {
    "<products>": _products,
    "<reshaped>": _reshaped,
    "<not_a_tensor>": _not_a_tensor,
    "<parts>": _parts,
    "<axis>": _axis,
    "<dtypes>": _dtypes,
    "<letters>": _letters,
    "<letter>": _letter,
}


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Patterns and their words, which stand below in lines with an indentation.

    <name> is an entry of `_MADE` or `_SHARED`. Lines of one pattern are joined as they are.
    """
    for found in re.finditer(r"((?:^\S.*\n)+)((?:^ .*\n)+)", text, re.MULTILINE):
        yield found[1].replace("\n", ""), " ".join(found[2].split())


# Words that the code adds to, or that several patterns share; {} is what a pattern finds.
_SHARED = dict(
    _entries(r"""
<product>
    the first tensor has rows of {} numbers, the second expects rows of {}: in a matrix product, and
    in nn.Linear, the two must be equal
<meeting>
    along axis {2} one tensor has {0} and the other {1}: two sizes fit only if they are equal or one
    of them is 1
<pair>
    with an axis, .{0}(...) returns two tensors, the values and their indices: .{0}(...).values is
    the first
<of_numpy>
    np.{0} is called with a tensor: write torch.{0} and give an axis, such as dim=-1
<none>
    this value is None: it was set or passed as None, or it comes from a function without a return
<float_size>
    a size is a float here, but sizes are whole numbers: / gives a float even for 8 / 2
<in_place>
    x[...] = y, x += y and methods with a trailing underscore change their tensor, and this one is
    an input or a parameter: make a new one
<one_number>
    one plain number is needed here, not a tensor; functions of math take one number, those of torch
    a whole tensor
<many>
    `if`, `and`, `or` and `not` need one True or False, but this tensor holds many
<a_layer>
    this is the {} layer itself, not what it makes: call it with its input, as in layer(x)
<twice>
    a value by position has taken the place of {} already
<no_start>
    your class has no __init__ with the parameter {}: use the parameter names of the stub, and two
    underscores on each side of init
<called>
    the values of the call do not fit its parameters: use the parameters of the stub
<no_function>
    parentheses after a value call it, but a plain {} cannot be called
<unknown>
    your function has no parameter {}: use the parameter names of the stub
<unknown_name>
    nothing here is called {}: import or define it, or correct the name
<unset>
    nothing has set self.{0} yet; a name without self. is lost when the method ends: self.{0} = ...
""")
)
# What the line's code adds to words above, or puts in their place without the semicolon: the first
# line has the words and what is in the code.
_BY_CODE = tuple(
    _entries(r"""
<parts> .*\.split\([^()"']+,
    ; split takes the size of a part, chunk the number of parts
<none> .*\w\.bias\b
    this value is None: a layer made with bias=False has no bias
<unknown_name> .*\bself\.
    ; write self. before it if it is set in __init__
<twice> $
    is self missing? It is the first parameter of every method
<twice> .*\bnn\.[A-Z]\w*\(
    ; a layer takes the tensor when it is called: nn.Softmax(dim=-1)(x)
<many> .*\bnn\.[A-Z]\w*\(
    a layer takes the tensor when it is called: nn.Softmax(dim=-1)(x)
<in_place> .*\w\.(weight|bias)(\[.*\] [-+*/]?= |\.\w+_\()
    a parameter may be changed in place only within torch.no_grad()
<(unknown|no_start)> .
    what is called here has no parameter {}: look up its parameters
<(products|product|meeting)> .*\w\.T\b
    ; .T reverses all axes of a tensor, not only the last two
""")
)
# How a line begins that fails whatever the message is.
_LINES = tuple(
    _entries(r"""
raise NotImplementedError\b
    this line stops your code: if it is left from the stub, put your own in its place or delete it
(<{7}|={7}|>{7})( |$)
    git left the marks of a merge conflict here: keep one version and delete the marks
```
    ``` marks code in a chat or a text, and is not Python: delete the lines with it
\d+[.:]? +(import|from|def|class|return|@)\b
    the number of the line was copied with it: delete the numbers
[%!]\w
    a line that begins with % or ! runs only in a notebook: delete it
>>>\s
    Python's prompt was copied with the code: delete >>> and ... before each line
(?i)<(!doctype|html)\b
    this is the web page around the code: download the code alone (GitHub: click Raw)
.*&(?:[gl]t|amp|quot);
    a web page writes &lt; for < and &gt; for >: retype the line
\{\\rtf
    a word processor has saved this with its formats: save it as plain text
""")
)
# What is in a message; the first that fits counts.
_TABLE = tuple(
    _entries(r"""
mat1 and mat2 shapes cannot be multiplied \(\d{1,9}x(\d{1,9}) and (\d{1,9})x\d
    <product>
dimensions of batch2 tensor to be: \[(\d+), (\d+)\] but got: \[(\d+), (\d+)\]
    <products>
tensor a \((\d+)\) must match .* tensor b \((\d+)\) at non-singleton dimension (\d+)
    <meeting>
^Sizes of tensors must match except in dimension (\d+)\. Expected size (\d+) but got size (\d+)
    the tensors are joined along axis {}; along another, one has {} and the other {}, and those two
    must be equal
^Tensors must have same number of dimensions: got (\d+) and (\d+)
    tensors are joined along an axis that all of them have: one has {} axes, the other {}
^stack expects each tensor to be equal size, but got (\[.*?\]) at entry 0 and (\[.*?\]) at
    stack puts tensors of one shape along a new axis: one has {}, the other {}
^Tensor must have a last dimension with stride 1
    the two parts of a complex number must be neighbours in memory, and those of a strided view are
    not: call contiguous() first
^output with shape \[([-\d, ]{1,90})\] doesn't match the broadcast shape
    a method that works in place cannot enlarge its tensor of shape [{}]
^one of the variables needed for gradient computation has been modified by an inplace operation
    the gradient needs numbers that your code has overwritten since: make a new tensor, without a
    method such as add_ and without inplace=True
^Output \d+ of \w+ is a view and is being modified inplace
    chunk, split and unbind give views of one tensor, and while gradients are kept none of them may
    change in place: make a new tensor, as x = x * 2 does
shape '\[([-\d, ]{1,90})\]' is invalid for input of size (\d+)
    <reshaped>
view size is not compatible with
    view reads the numbers in the order in which memory stores them; transpose and permute change
    the order of the axes, not the order in memory
^(\w+)\(\): argument .* must be Tensor, not ([\w.]+)$
    <not_a_tensor>
torch\.return_types\.(\w+)
    <pair>
^maximum recursion depth exceeded
    a function calls itself, directly or through another, too often: does it ever stop?
^\[enforce fail at alloc_cpu\.cpp|^CUDA out of memory
    a tensor here is far too large for the memory: print the shapes that go into this line
before Module\.__init__\(\) call
    call super().__init__() first: an nn.Module must be set up before it gets layers
Fan in and fan out can not be computed
    Xavier's spread follows from the two sizes of a matrix; this tensor has fewer axes, as a bias
    has
^(too many) values to unpack \(expected (\d+)(.*)\)
    <parts>
^(not enough) values to unpack \(expected (\d+), got (\d+)\)
    <parts>
^(\w+)\(\) received an invalid combination of arguments - got \([^)]*\bout=NoneType
    <of_numpy>
^(sum|mean|prod|std|var)\(\) got an unexpected keyword argument 'axis'
    <of_numpy>
^'(dim|axis|keepdims?)' is an invalid keyword argument for (\w+)\(\)
    Python's own {1} has no {0}=: torch.{1} has it
^(sum|max|min)\(\) got an unexpected keyword argument '(dim|keepdim)'
    Python's own {0} has no {1}=: torch.{0} has it
^(\w+)\(\): argument 'dim' .*must be int, not NoneType
    <of_numpy>
'NoneType'|- got \([^()]*\bNoneType\b|but got NoneType$|non-iterable NoneType object$
    <none>
must be tuple of ints,? but (?:got|found element of type) float
    <float_size>
type must be tuple of ints,but got float|an iterable of 'int' \(item \d+ is 'float'\)
    <float_size>
must be (?:int|tuple of ints), not float$|^slice indices must be integers|indices \(got float\)$
    a whole number is needed here: / gives a float even for 8 / 2, and // does not
argument '(\w+)' \(position \d+\) must be bool, not \w+$
    {0} takes True or False: is the order of the arguments right? {0}= says which one is meant
^\w+\(\): argument '(\w+)'.* must be float, not Dropout$
    {} takes a number, and this is a Dropout layer: its attribute p is the number
only one element tensors can be converted|must be (?:Number|tuple of ints), not Tensor$
    <one_number>
must be tuple of ints, ?but (?:got|found element of type) Tensor
    <one_number>
^a Tensor with \d+ elements cannot be converted to Scalar
    <one_number>
^only one dimension can be inferred
    only one size may be -1: it follows from the others
'float' object cannot be interpreted as an integer
    <float_size>
^(tri[lu]): input tensor must have at least 2 dimensions
    {} cuts a triangle out of a matrix, such as torch.ones(n, n), and this tensor has fewer axes
Dimension out of range \(expected .* \[(-\d+), (\d+)\], but got (-?\d+)\)
    <axis>
(masked_fill|where)_? .*boolean.* but got (?:(?:mask|a tensor) with )?dtype ([\w ]+)
    {} takes a mask of True and False, but the dtype of this one is {}
^\w+\(\) received an invalid combination of arguments - got \((?:[^()=]*, )?str\b
    a text in quotes stands among the values, and this needs a number: float('-inf') is one
^masked_fill_?\(\) received an invalid combination of arguments - got \(bool\b
    the mask is a plain True or False here: `is` gives one, and so does == with None; mask == 0
    compares each number of a tensor
^masked_fill_?\(\) received an invalid combination of arguments - got \(int\b
    the mask is a plain whole number here: ~ makes one of a plain True or False, as a comparison
    with None gives
leaf Variable that requires grad is being used in an in-place operation
    <in_place>
expected scalar type (\w+) but found (\w+)|dtype, but got:? (?:c10::)?(\w+) (?:!=|and) (?:c10::)?(
\w+)
    <dtypes>
^Expected attn_mask dtype to be bool
    F.scaled_dot_product_attention takes a mask of True and False, and adds one of floats to the
    scores: make yours boolean
Explicit attn_mask should not be set when is_causal=True
    F.scaled_dot_product_attention takes one of the two here: put both into one mask
Boolean value of Tensor with more than one value is ambiguous
    <many>
subscripts in the equation \((\d+)\) does not match .* \((\d+)\) for operand (\d)
    <letters>
subscript (\w) has size (\d+) for operand (\d) .* previously seen size (\d+)
    <letter>
expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) .* (\d+)\.\s
    along axis {2} the target has size {0} and the tensor {1}: only a size of 1 stretches
^~ \(operator\.invert\) is only implemented
    ~ turns True and False round; for a mask of numbers write mask == 0
^masked_fill_?\(\) received an invalid combination
    it is called as x.masked_fill(mask, value): a mask of True and False, and one number
^Subtraction, the `-` operator, with (?:a|two) bool tensor
    True and False cannot be subtracted: ~mask turns a boolean mask round, and mask == 0 does so for
    numbers, too
^(?:unsup.*|'[<>]=?' .*)?'((?:Lazy)?Linear|Dropout|Softmax)'(?: .*'(?:view|reshape|transpose|
permute|shape)'| and|$)
    <a_layer>
^only integer tensors of a single element can be converted to an index
    a single whole number is needed here, as for the bound of a slice; this tensor holds several
    numbers, or no integers
^The shape of the mask \[.* does not match the shape of the indexed tensor
    a mask in brackets has the sizes of its tensor's first axes; masked_fill broadcasts it
input\.dim\(\) = (\d+) is not equal to len\(dims\) = (\d+)
    the tensor has {} axes, and permute was given {}
^transpose\(\)(?:: argument 'dim0' .* not (?:tuple|list)| takes \d | missing 2 |.*got \((?:
tuple|int, int, ))
    a tensor's transpose swaps two axes, as in transpose(1, 2), where numpy's takes the order of
    all: that is permute
^too many indices for tensor of dimension (\d+)
    the tensor's number of axes is {}, and the brackets name more; None does not count
^index (\d+) is out of bounds for dimension (\d+) with size (\d+)
    axis {1} has {2} places and no place {0}; a slice such as :{0} takes the places before it
^\w+\.(?!forward\b|__)\w+\(\) got multiple values for argument '(\w+)'
    more values came by position than the parameters before {} can take; the first of a method is
    its object, self
number of sizes provided \((\d+)\) must be greater or equal to .* tensor \((\d+)\)
    the tensor has {1} axes, and expand cannot make {0} of them
^shapes \(.*\) and \(.*\) not aligned
    np.dot sums over other axes: matmul and @ take one matrix for each batch and head
^batch[12] must be a 3D tensor
    bmm takes tensors of three axes only; matmul and @ take any number of them
^(?:mm: )?(?:self|mat2) must be a matrix|^vector \+ matrix @ vector|^1D tensors expected
    mm takes two matrices, mv a matrix and a vector, dot two vectors; matmul and @ take a matrix for
    each batch and head
^t\(\) expects a tensor with
    t turns a single matrix; transpose(-2, -1) swaps the last two axes of any tensor
^Tensor must have a last dimension of size 2
    the real and the imaginary part are the last axis: make pairs of it first, with size 2
cannot be converted to type \S*Half without overflow
    this number does not fit into float16, whose largest is 65504
cannot be converted to type \S*BFloat16 without overflow
    this number does not fit into bfloat16; -inf does, and so does torch.finfo(x.dtype).min
^(\w+)\(\): argument 'tensors' .* must be tuple of Tensors, not Tensor$
    torch.{} takes a list or tuple of tensors, not a single one
not compiled with CUDA|no attribute '_cuda_|Found no NVIDIA driver|re-initialize CUDA in forked
    your code runs without a GPU here: let it use the device that it is given, such as x.device
^Expected a cuda device, but got: cpu
    torch.cuda knows only the memory and the work of a GPU, and the device here is the CPU
cannot be converted to type float without overflow
    this number does not fit into float32, whose largest is 3.4e38
cannot be converted to type (u?int\d+)_t without overflow
    the tensor that takes this number has the dtype {}, and integers are whole and never infinite:
    convert it first, as in x.float()
^unhashable type: '([A-Z]\w*)'$
    a class with its own __eq__, as @dataclass makes one, cannot be in a set, and torch puts modules
    into sets: @dataclass(eq=False) makes none
subscript (\w) is repeated for operand \d
    two axes of one tensor share the letter {}, which takes the diagonal: give each its own letter
^No available kernel
    sdpa_kernel leaves only some of the kernels, and none of them takes these arguments
on the same device
    some of these tensors are on the CPU and some on the GPU: give a tensor that you create the
    device of your input, such as device=x.device
CUDA error: device-side assert triggered
    an index is too large or negative; with --device cpu you see which
^'module' object is not callable
    this name is a whole file or library: import the function from it, as in from NAME import NAME
^'(Test\w*)' object is not callable
    this is the object of the class {}: is self missing? It is the first parameter of every method
^'(?:torch\.)?(\w+)' object is not callable
    <no_function>
^Can't call numpy\(\) on Tensor that requires grad|unsupported ScalarType BFloat16
    no gradient passes through numpy, and it has no bfloat16: stay with tensors
^[\w.]+\(\) (?:takes \d+ positional|missing \d+ required positional)
    <called>
\.__init__\(\) got multiple values for argument '(\w+)'
    <twice>
\.__init__\(\) got an unexpected keyword argument '(\w+)'
    <no_start>
got an unexpected keyword argument '(\w+)'
    <unknown>
^'(tuple|list)' object has no attribute '(?:view|reshape|transpose|permute|shape|size|dim|sum)'
    this is a {}, as chunk and split give one, and no tensor: take one of its entries, or join them
^'tuple' object has no attribute '\w+'
    the entries of a plain tuple have numbers and no names: x[0] is the first
^'Tensor' object has no attribute '(astype|copy)'
    {} is a method of numpy's arrays: a tensor has to(dtype) and clone()
^'(int|float|bool|str)' object has no attribute
    this is a plain {}, and neither a tensor nor a layer
^'\w+' object has no attribute '(\w+)'
    <unset>
^'int' object is not iterable
    this is one number, and not a list of numbers: range(n) counts from 0 to n - 1
^'(?:builtin_function_or_method|method|function|(?:Lazy)?Linear|Dropout|Softmax)' object is not subs
    brackets after a function, a method or a layer cannot call it: write f(0), not f[0]
device type at start of device string: (\w+)
    '{}' is read as a device, such as 'cpu' or 'cuda'; a dtype has no quotes: torch.float32
^cannot assign 'torch\.\w+' as parameter
    a parameter cannot be replaced by a tensor: change its values, with nn.init for example
^tuple index out of range
    there are fewer entries: a shape has one for each axis, counted from 0
^Module \[(\w+)\] is missing the required "forward"
    the class {} has no method called forward: check its name, and that it is indented inside the
    class
from partially initialized module '(\w+)'
    {}.py imports itself, directly or through another file: delete the import of the file itself or
    of a later stage
^unexpected indent
    this line begins further to the right than the line above it: align the two
^expected an indented block
    after a line that ends with a colon, the next one begins further to the right; a comment does
    not count
^'(\w+)' outside function
    {} belongs to a function: indent this line, or restore its def above it
^(?:unterminated string literal|EOL while scanning string)
    a quotation mark or an apostrophe begins a text here that does not end on this line; if these
    are words and not code, begin the line with #
^EOF when reading a line
    nobody can answer input() while code is graded: delete it
^invalid non-printable character
    the line has a character that you cannot see, often copied from a web page: retype the line
^inconsistent use of tabs and spaces
    some lines begin with tabs and some with spaces: use four spaces for each level
^unindent does not match any outer
    no line above has the indentation of this line: align it with its own block
^expected '\('$
    a function's name is followed by (; [T] between them needs Python 3.12 or later
^f-string: (?:unmatched '[\[(]'|unterminated string)
    quotes like the f-string's own within {{ and }} need Python 3.12 or later: use the other quotes
^f-string expression part cannot include a backslash
    a backslash within {{ and }} needs Python 3.12 or later: put that part into a variable first
^f-string: expecting '\}'
    a }} is missing, or there are quotes like the f-string's own within {{ and }}, which needs
    Python 3.12 or later
^invalid character '(.)'
    copied text often has {} where Python needs a plain character: retype it
^attempted relative import|^No module named 'exercises
    a stage's file is imported by its name alone: from NAME import ...
^cannot import name '\w+' from '(\w+)' \(.*(?:python3[.\d]*|Lib|lib-dynload)[/\\]\1\b
    Python's own {0} has no such name; if you have a {0}.py, give it another name
^cannot import name '(\w+)' from 'submission'
    only one file or notebook is graded here, and it does not define {}: define it there, or submit
    the folder with all your files
^source code (?:string )?cannot contain null bytes
    the file is damaged, or no text: save it again, as plain text in UTF-8
^\(unicode error\) 'utf-8' codec can't decode|^Non-UTF-8 code starting with
    the file holds a letter or a quotation mark that is not saved as UTF-8: retype it, and save the
    file as UTF-8
^name '(null|true|false)' is not defined
    {} is a word of JSON: Python has None, True and False. The name of a notebook's file must end
    with .ipynb
^stack expects a non-empty|expected a non-empty list of Tensors
    the list is empty: nothing has been put into it
^(list|tuple) indices must be integers or slices, not tuple
    this is a {} and no tensor, so brackets take one number: take an entry first, or join them
^unsupported operand type\(s\) for [^:]+: .*'(tuple|list)'
    this is a {} of values, and arithmetic needs a tensor: take an entry, or join them
^unsupported operand type\(s\) for @: '(?:Tensor|int|float)' and '(?:Tensor|int|float)'
    @ is the product of two matrices; with a plain number, write *
^"\w+" not implemented for '(\w+)'
    torch cannot compute this for a tensor of dtype {}; .float() makes a copy in float32
^name 'self' is not defined
    self is the first parameter of a method, as in def forward(self, x); outside a class there is
    none
^name '(\w+)' is not defined\. Did you mean: 'self\.
    {0} belongs to the object: within a method write self.{0}
^name '(\w+)' is not defined
    <unknown_name>
^module 'torch\.nn' has no attribute '[a-z]
    classes of torch.nn begin with a capital letter, as nn.Linear does; functions such as softmax
    are in torch.nn.functional
local variable '(\w+)' (?:where it is not associated|referenced before)
    {} has no value yet: the line that sets it comes later, or did not run
""")
)
