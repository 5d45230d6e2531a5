"""Chat templates that spell a call's arguments one by one, with the structure of the families', shortened."""

from __future__ import annotations

from unit.models.chat_templates import Family

_TOOLS = """{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n<function>\\n<name>' ~ tool.function.name ~ '</name>\\n</function>' }}{%- endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- endif %}"""
QWEN3_CODER = (
    _TOOLS
    + """{%- for message in messages %}
    {%- if message.role == "assistant" and message.tool_calls is defined and message.tool_calls %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content is string and message.content | trim | length > 0 %}
            {{- '\\n' + message.content | trim + '\\n' }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '\\n<tool_call>\\n<function=' + tool_call.name + '>\\n' }}
            {%- for args_name, args_value in tool_call.arguments|items %}
                {{- '<parameter=' + args_name + '>\\n' }}
                {%- set args_value = args_value | tojson | safe if args_value is mapping
                    or (args_value is sequence and args_value is not string) else args_value | string %}
                {{- args_value }}
                {{- '\\n</parameter>\\n' }}
            {%- endfor %}
            {{- '</function>\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "user" or message.role == "system" or message.role == "assistant" %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.previtem and loop.previtem.role != "tool" %}{{- '<|im_start|>user\\n' }}{%- endif %}
        {{- '<tool_response>\\n' }}{{- message.content }}{{- '\\n</tool_response>\\n' }}
        {%- if not loop.last and loop.nextitem.role != "tool" %}{{- '<|im_end|>\\n' }}
        {%- elif loop.last %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
)
# Values as JSON, and words before the calls: the later members of the family.
QWEN35 = QWEN3_CODER.replace(
    """args_value | tojson | safe if args_value is mapping
                    or (args_value is sequence and args_value is not string) else args_value | string""",
    "args_value | string if args_value is string else args_value | tojson | safe",
)
GLM45 = """[gMASK]<sop>
{%- if tools -%}<|system|>
# Tools
<tools>{% for tool in tools %}{{ tool.function.name }}{% endfor %}</tools>{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}<|user|>
{{ m.content }}
{%- elif m.role == 'assistant' -%}<|assistant|>
{%- if m.reasoning_content is string and m.reasoning_content -%}
{{ '\\n<think>' + m.reasoning_content.strip() +  '</think>' }}
{%- else -%}{{ '\\n<think></think>' }}{%- endif -%}
{%- if m.content.strip() -%}{{ '\\n' + m.content.strip() }}{%- endif -%}
{% if m.tool_calls %}
{% for tc in m.tool_calls %}
{%- if tc.function %}{%- set tc = tc.function %}{%- endif %}
{{ '\\n<tool_call>' + tc.name }}
{% set _args = tc.arguments %}
{% for k, v in _args.items() %}
<arg_key>{{ k }}</arg_key>
<arg_value>{{ v | tojson if v is not string else v }}</arg_value>
{% endfor %}
</tool_call>{% endfor %}
{% endif %}
{%- elif m.role == 'tool' -%}
{%- if loop.first or (messages[loop.index0 - 1].role != "tool") -%}<|observation|>{%- endif -%}
{{- '\\n<tool_response>\\n' }}{{- m.content }}{{- '\\n</tool_response>' }}
{%- elif m.role == 'system' -%}<|system|>
{{ m.content }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"""
MINIMAX = """{%- if tools %}{{ ']~b]system\\n' }}{% for t in tools %}{{ t.function.name }}{% endfor %}
{{- '[e~[\\n' }}{% endif -%}
{%- for m in messages -%}
{{- ']~b]' + ('ai' if m.role == 'assistant' else m.role) + '\\n' -}}
{{- m.content -}}
{%- if m.tool_calls -%}
{{- '\\n<minimax:tool_call>\\n' -}}
{%- for tc in m.tool_calls -%}
{{- '<invoke name="' + tc.function.name + '">' -}}
{%- for k, v in tc.function.arguments.items() -%}
{{- '\\n<parameter name="' + k + '">' -}}{{- v | tojson if v is not string else v -}}{{- '</parameter>' -}}
{%- endfor -%}
{{- '\\n</invoke>\\n' -}}
{%- endfor -%}
{{- '</minimax:tool_call>' -}}
{%- endif -%}
{{- '[e~[\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ ']~b]ai\\n' }}{%- endif -%}"""
# A call is ended by the mark that opens its result; keys are sorted; words come behind the calls.
GEMMA4 = """{%- macro argument(value) -%}
    {%- if value is string -%}{{ '<|"|>' + value + '<|"|>' }}
    {%- elif value is boolean -%}{{ 'true' if value else 'false' }}
    {%- elif value is mapping -%}{{ '{' }}{%- for k, v in value | dictsort -%}
        {%- if not loop.first %},{% endif -%}{{ k }}:{{ argument(v) }}{%- endfor -%}{{ '}' }}
    {%- elif value is sequence -%}{{ '[' }}{%- for v in value -%}
        {%- if not loop.first %},{% endif -%}{{ argument(v) }}{%- endfor -%}{{ ']' }}
    {%- else -%}{{ value }}{%- endif -%}
{%- endmacro -%}
{{ bos_token }}
{%- if tools or messages[0]['role'] == 'system' -%}
    {{- '<|turn>system\\n' -}}
    {%- if messages[0]['role'] == 'system' -%}{{- messages[0]['content'] | trim -}}{%- endif -%}
    {%- for tool in tools or [] -%}{{- '<|tool>declaration:' + tool['function']['name'] + '{}<tool|>' -}}{%- endfor -%}
    {{- '<turn|>\\n' -}}
{%- endif -%}
{%- for message in messages if message['role'] != 'system' -%}
    {{- '<|turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' -}}
    {%- for call in message['tool_calls'] or [] -%}
        {{- '<|tool_call>call:' + call['function']['name'] + '{' -}}
        {%- for k, v in call['function']['arguments'] | dictsort -%}
            {%- if not loop.first %},{% endif -%}{{- k -}}:{{- argument(v) -}}
        {%- endfor -%}
        {{- '}<tool_call|>' -}}
    {%- endfor -%}
    {{- message['content'] | trim -}}
    {%- if message['tool_calls'] and not message['content'] -%}{{- '<|tool_response>' -}}
    {%- else -%}{{- '<turn|>\\n' -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|turn>model\\n' }}{%- endif -%}"""

SPELLED = {
    "qwen 3 coder": Family(QWEN3_CODER, "<|im_end|>", "<|im_start|>assistant\n"),
    "qwen 3.5": Family(QWEN35, "<|im_end|>", "<|im_start|>assistant\n"),
    "glm 4.5": Family(GLM45, "<|user|>", "<|assistant|>", eos="<|endoftext|>"),
    "minimax": Family(MINIMAX, "[e~[", "]~b]ai\n"),
    "gemma 4": Family(GEMMA4, "<turn|>", "<|turn>model\n", bos="<bos>", eos="<eos>"),
}
